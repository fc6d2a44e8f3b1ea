/* SPDX-License-Identifier: MIT */
/*
 * A pipe over loopback: its kernel reports what nobody asked for any more, and
 * is asked for nothing that cannot be new. How much early binding may give it.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loopback.h"
#include "mux/base/sock.h"
#include "mux/pipe/owed.h"
#include "pipe_scene.h"

enum { IN_FLIGHT = 12345 };	/* of all of the path, whoever asks */

static struct {
	struct pipe_scene scene;
	unsigned int acked, readable;
	size_t met;		/* in flight, by the last that was acknowledged */
	unsigned int enough;	/* so many times, then who reads has found the end; 0: never */
	struct passing passing;	/* on its path, */
	bool fast;		/* which brings segments one soon after the other, */
	bool datagrams;		/* and datagrams */
} here;

static void readable(struct pipe *p)
{
	if (++here.readable == here.enough)
		pipe_forsake(p);
}

static void acked(struct pipe *p, const struct ack_asked *what, int64_t at)
{
	(void)p, (void)at;
	here.acked++;
	here.met = what->in_flight;
}

static size_t in_flight(const struct pipe *p)
{
	(void)p;
	return IN_FLIGHT;
}

static const struct pipe_ops ops = {
	.readable = readable, .acked = acked, .in_flight = in_flight,
};

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	return pipe_scene_begin(&here.scene, &ops);
}

static int tear_down(void **state)
{
	(void)state;
	pipe_scene_end(&here.scene);
	return 0;
}

/* Written, and reported by the kernel, which the loop has not heard of yet. */
static void have_stamp(uint64_t offset)
{
	struct ack_asked what = { .clean = true };
	struct pollfd p = { .fd = here.scene.pipe->fd };

	assert_int_equal(acks_send(&here.scene.pipe->acks, here.scene.pipe->fd, "x", 1,
				   offset, &what), 1);
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_true(p.revents & POLLERR);
}

static void assert_told(unsigned int times)
{
	struct pollfd p = { .fd = here.scene.pipe->fd };

	run_round(here.scene.shared.loop);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(here.acked, times);
	assert_int_equal(here.readable, 0);
}

static void what_is_awaited_is_told(void **state)
{
	(void)state;
	have_stamp(0);
	assert_told(1);
}

/* It was given up for lost; left there, it would wake the loop for ever. */
static void what_is_awaited_no_more_is_taken_all_the_same(void **state)
{
	(void)state;
	have_stamp(0);
	here.scene.pipe->acks.count = 0;
	assert_told(0);
	have_stamp(1);
	assert_told(1);
}

/* --- looks --- */

static struct {
	struct carrier carrier;	/* the pipe's, whose looks are counted */
	const struct carrier *real;
	unsigned int closely, at_queues;
} looks;

static void look(struct pipe *p)
{
	looks.closely++;
	looks.real->look(p);
}

static void look_at_queues(struct pipe *p)
{
	looks.at_queues++;
	looks.real->look_at_queues(p);
}

static void count_looks(void)
{
	looks.real = here.scene.pipe->carrier;
	looks.carrier = *looks.real;
	looks.carrier.look = look;
	looks.carrier.look_at_queues = look_at_queues;
	looks.closely = looks.at_queues = 0;
	here.scene.pipe->carrier = &looks.carrier;
}

static void assert_looks(unsigned int closely, unsigned int at_queues)
{
	assert_int_equal(looks.closely, closely);
	assert_int_equal(looks.at_queues, at_queues);
	looks.closely = looks.at_queues = 0;
}

static void look_for_a_while(int64_t from)
{
	int64_t now;

	for (now = from; now < from + NS_PER_SEC; now += NS_PER_MS)
		pipe_look(here.scene.pipe, now);
}

static bool all_is_acknowledged(void *arg)
{
	(void)arg;
	return !sock_outstanding(here.scene.pipe->fd);
}

static void one_at_rest_is_not_looked_at(void **state)
{
	int64_t now = loop_clock();

	(void)state;
	count_looks();
	look_for_a_while(now);
	assert_looks(0, 0);
	pipe_scene_send(&here.scene);
	pipe_look(here.scene.pipe, here.scene.pipe->looked_at);
	assert_looks(0, 1);
}

/* Its last acknowledgement tells of its round trip, its window and its rate: that is asked for once. */
static void one_that_came_to_rest_is_asked_once_more(void **state)
{
	int64_t asked_at;

	(void)state;
	count_looks();
	pipe_scene_send(&here.scene);
	assert_true(pipe_outstanding(here.scene.pipe) > 0);
	assert_true(run_until(here.scene.shared.loop, "an acknowledgement",
			      all_is_acknowledged, NULL));
	asked_at = here.scene.pipe->looked_at;
	pipe_look(here.scene.pipe, asked_at);
	assert_looks(0, 1);
	assert_int_equal(pipe_outstanding(here.scene.pipe), 0);
	pipe_look(here.scene.pipe, asked_at);
	assert_looks(0, 0);
	look_for_a_while(asked_at);
	assert_looks(1, 0);
	pipe_scene_send(&here.scene);
	look_for_a_while(asked_at + NS_PER_SEC);
	assert_true(looks.closely > 0);
}

/* --- errors --- */

static int is_told(struct pipe *p, struct run *run)
{
	(void)run;
	p->end_error = -ECONNRESET;
	return p->end_error;
}

/* As long as nobody has read so far: a round may be over before its turn comes. */
static void whose_end_a_write_was_told_is_read(void **state)
{
	(void)state;
	count_looks();
	looks.carrier.write = is_told;
	here.enough = 3;
	pipe_scene_send(&here.scene);
	assert_int_equal(here.readable, 0);
	run_round(here.scene.shared.loop);
	assert_int_equal(here.readable, 3);
	pipe_scene_send(&here.scene);
	run_round(here.scene.shared.loop);
	assert_int_equal(here.readable, 3);
}

static bool is_found(struct pipe *p, int64_t now, int64_t limit)
{
	(void)now, (void)limit;
	p->end_error = -ENOTCONN;
	return false;
}

static void and_one_whose_end_is_found(void **state)
{
	(void)state;
	count_looks();
	looks.carrier.is_unheard = is_found;
	here.enough = 1;
	run_round(here.scene.shared.loop);
	assert_int_equal(here.readable, 0);
	assert_false(pipe_is_unheard(here.scene.pipe, loop_clock(), NS_PER_SEC));
	run_round(here.scene.shared.loop);
	assert_int_equal(here.readable, 1);
}

/* --- what it says of what came --- */

enum { PIECE = 40 };

/* The peer sends a piece of a message, which the pipe reads. */
static void bring(const uint8_t *piece)
{
	assert_int_equal(send(here.scene.peer, piece, PIECE, 0), PIECE);
	assert_int_equal(poll(&(struct pollfd){ here.scene.pipe->fd, POLLIN, 0 }, 1,
			      5000), 1);
	here.scene.shared.scratch_used = 0;
	assert_int_equal(pipe_read(here.scene.pipe, 4096), PIECE);
}

/* From the end of the round on in which it was read. */
static int64_t until_acknowledged(int64_t from)
{
	run_round(here.scene.shared.loop);
	while (sock_outstanding(here.scene.peer) && loop_clock() < from + NS_PER_SEC)
		poll(NULL, 0, 1);
	return loop_clock() - from;
}

/*
 * Whoever answers on the same socket makes the kernel wait for the answer. Nine times,
 * because the machine may be busy; and the first acknowledgements are never delayed.
 * @sends: the pipe takes each for taken along by something that it sent.
 */
static bool delays_acknowledgements(bool sends)
{
	static uint8_t scratch[2 * WIRE_MESSAGE_MAX];
	uint8_t message[WIRE_MESSAGE_MAX] = { 0 };
	unsigned int late = 0;

	here.scene.shared.scratch = scratch;
	here.scene.shared.scratch_size = sizeof(scratch);
	wire_put_data(message, 1, 0, WIRE_PAYLOAD_MAX);
	for (unsigned int i = 0; i < 29; i++) {
		int64_t now = loop_clock();

		here.passing.filled_at = here.fast ? loop_now(here.scene.shared.loop) : 0;
		here.passing.datagram_at = here.datagrams ? now : 0;
		bring(message + i * PIECE);
		here.scene.pipe->tx_bytes += sends;
		late += i >= 20 && until_acknowledged(now) > 20 * NS_PER_MS;
		assert_int_equal(send(here.scene.pipe->fd, "x", 1, 0), 1);
	}
	return late > 4;
}

static void what_comes_alone_is_acknowledged_late(void **state)
{
	(void)state;
	assert_true(delays_acknowledgements(false));
}

static void by_one_that_is_prompt_in_the_same_round(void **state)
{
	(void)state;
	here.scene.pipe->prompt = true;
	assert_false(delays_acknowledgements(false));
}

static void and_is_not_asked_for_where_something_took_it_along(void **state)
{
	(void)state;
	here.scene.pipe->prompt = true;
	assert_true(delays_acknowledgements(true));
}

/* Each piece is a segment. */
static bool delays_acknowledgements_of_segments(bool datagrams, bool fast)
{
	here.scene.pipe->prompt = true;
	here.scene.pipe->info.mss = PIECE;
	here.scene.pipe->passing = &here.passing;
	here.datagrams = datagrams;
	here.fast = fast;
	return delays_acknowledgements(false);
}

static void a_segment_is_acknowledged_with_the_next_one(void **state)
{
	(void)state;
	assert_true(delays_acknowledgements_of_segments(false, false));
}

static void beside_datagrams_at_once_on_a_slow_path(void **state)
{
	(void)state;
	assert_false(delays_acknowledgements_of_segments(true, false));
}

static void and_with_the_next_one_on_a_fast_path(void **state)
{
	(void)state;
	assert_true(delays_acknowledgements_of_segments(true, true));
}

static bool both_are_acked(void *arg)
{
	(void)arg;
	return here.acked == 2;
}

/* Else its leaving would be told of, too. */
static void what_leaves_at_once_is_known(void **state)
{
	const struct acks *acks = &here.scene.pipe->acks;

	(void)state;
	pipe_ask(here.scene.pipe, 0, WIRE_HEADER + 1);
	pipe_scene_send(&here.scene);
	pipe_ask(here.scene.pipe, 0, WIRE_HEADER + 1);
	pipe_scene_send(&here.scene);
	assert_int_equal(acks->count, 2);
	assert_true(acks->asked[acks->first].clean);
	assert_false(acks->asked[acks->first].schedule);
	/* As far as was looked, the first is in front of it. */
	assert_false(acks->asked[acks->first + 1].clean);
	assert_true(acks->asked[acks->first + 1].schedule);
	/* What met so much may be gone when it is acknowledged. */
	assert_true(run_until(here.scene.shared.loop, "acknowledgements",
			      both_are_acked, NULL));
	assert_int_equal(here.met, IN_FLIGHT);
}

/* --- what it holds --- */

static void send_large(void)
{
	struct run *run = run_get_large(&here.scene.shared.pool);

	memset(run->buf, 0, RUN_LARGE);
	run->len = RUN_LARGE;
	pipe_send(here.scene.pipe, run);
}

static bool nothing_is_in_flight(void *arg)
{
	(void)arg;
	pipe_look_closely(here.scene.pipe, loop_clock());
	return !here.scene.pipe->info.in_flight;
}

/*
 * The other end reads nothing. What waits for the socket behind that would hold up the other
 * pipes as well, where the limit is small: for good, as nothing is acknowledged any more.
 */
static void behind_a_closed_window_it_holds_nothing(void **state)
{
	struct pipe *p = here.scene.pipe;

	(void)state;
	while (!p->queue)
		send_large();
	assert_true(run_until(here.scene.shared.loop, "a closed window",
			      nothing_is_in_flight, NULL));
	assert_true(p->queue && p->info.unsent && p->info.stuck == p->info.unsent);
	assert_int_equal(pipe_held(p), 0);
	assert_int_equal(pipe_outstanding(p), p->queued + p->info.unsent);
	/* What was written since is not known to be stuck. */
	p->info.unsent += 1000;
	assert_int_equal(pipe_held(p), 1000);
	p->info.in_flight = p->info.mss;
	p->info.stuck = 0;
	assert_int_equal(pipe_held(p), p->queued + p->info.unsent + p->info.mss);
}

/* --- what early binding may give it --- */

static void assert_room(size_t room)
{
	assert_int_equal(pipe_room(here.scene.pipe), room);
}

/* A pipe to whom @space bytes more are open in its socket; on a fast path, or a slow one. */
static void be_early(bool fast, size_t space, size_t app_buffer)
{
	here.scene.settings.late = false;
	here.scene.settings.app_buffer = app_buffer;
	here.scene.pipe->allowance = fast ? 512 * 1024 : 4096;
	here.scene.pipe->info.space = space;
}

static void early_runs_fit_into_the_socket(void **state)
{
	(void)state;
	be_early(true, 1 << 20, 0);
	assert_room(RUN_LARGE);
	be_early(true, 100000, 0);
	assert_room(100000);
	pipe_scene_send(&here.scene);
	assert_room(100000 - WIRE_HEADER - 1);
	/* A full socket tells by itself. */
	be_early(true, 0, 0);
	assert_room(WIRE_MESSAGE_MAX);
}

static void early_runs_fit_into_what_may_wait(void **state)
{
	(void)state;
	be_early(true, 50000, 100000);
	assert_room(150000);
	here.scene.pipe->queue = run_get(&here.scene.shared.pool);
	here.scene.pipe->queued = 40000;
	assert_room(60000);
	here.scene.pipe->queued = 100000 - WIRE_MESSAGE_MAX + 1;
	assert_room(0);
	be_early(true, 50000, 0);
	assert_room(0);
	here.scene.pipe->queued = 0;
}

static void early_on_a_slow_path_goes_message_by_message(void **state)
{
	(void)state;
	be_early(false, 1 << 20, 1 << 20);
	assert_room(WIRE_MESSAGE_MAX);
}

/* The kernel's own figure: as much as the socket is set for, less what fills it. */
static void a_look_tells_what_the_socket_takes(void **state)
{
	size_t empty;

	(void)state;
	here.scene.settings.late = false;
	small_buffers(here.scene.peer, here.scene.pipe->fd);
	pipe_look_closely(here.scene.pipe, loop_clock());
	empty = here.scene.pipe->info.space;
	assert_true(empty >= WIRE_MESSAGE_MAX);
	fill_socket(here.scene.pipe->fd);
	pipe_look_closely(here.scene.pipe, loop_clock());
	assert_true(here.scene.pipe->info.space < empty);
	assert_in_range(here.scene.pipe->info.space, 0, WIRE_MESSAGE_MAX);
}

/* --- runs --- */

static void spare_runs_are_bounded(void **state)
{
	struct run_pool pool = { 0 };
	struct run *all[100];
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		all[i] = i % 2 ? run_get_large(&pool) : run_get(&pool);
		assert_int_equal(all[i]->size, i % 2 ? RUN_LARGE : RUN_SIZE);
	}
	for (i = 0; i < 100; i++)
		run_put(&pool, all[i]);
	assert_in_range(pool.bytes, RUN_SPARE / 2, RUN_SPARE);
	/* Each is used again as what it is. */
	all[0] = run_get_large(&pool);
	assert_int_equal(all[0]->size, RUN_LARGE);
	all[1] = run_get(&pool);
	assert_int_equal(all[1]->size, RUN_SIZE);
	run_put(&pool, all[0]);
	run_put(&pool, all[1]);
	run_pool_fini(&pool);
	assert_int_equal(pool.bytes, 0);
}

static int empty_pool(void **state)
{
	tear_down(state);	/* it gives back what it has */
	run_pool_fini(&here.scene.shared.pool);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_awaited_is_told, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_awaited_no_more_is_taken_all_the_same, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(one_at_rest_is_not_looked_at,
						set_up, empty_pool),
		cmocka_unit_test_setup_teardown(
			one_that_came_to_rest_is_asked_once_more, set_up,
			empty_pool),
		cmocka_unit_test_setup_teardown(
			whose_end_a_write_was_told_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(and_one_whose_end_is_found,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_comes_alone_is_acknowledged_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			by_one_that_is_prompt_in_the_same_round, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			and_is_not_asked_for_where_something_took_it_along, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_segment_is_acknowledged_with_the_next_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			beside_datagrams_at_once_on_a_slow_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			and_with_the_next_one_on_a_fast_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_leaves_at_once_is_known,
						set_up, empty_pool),
		cmocka_unit_test_setup_teardown(
			behind_a_closed_window_it_holds_nothing, set_up, empty_pool),
		cmocka_unit_test_setup_teardown(early_runs_fit_into_the_socket,
						set_up, empty_pool),
		cmocka_unit_test_setup_teardown(
			early_runs_fit_into_what_may_wait, set_up, empty_pool),
		cmocka_unit_test_setup_teardown(
			early_on_a_slow_path_goes_message_by_message, set_up,
			empty_pool),
		cmocka_unit_test_setup_teardown(
			a_look_tells_what_the_socket_takes, set_up, empty_pool),
		cmocka_unit_test(spare_runs_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
