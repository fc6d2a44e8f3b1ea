/* SPDX-License-Identifier: MIT */
/*
 * A layer between a pipe and its socket: the handshake goes before the greeting,
 * what was read behind it is the pipe's, records are made no further ahead than one
 * run or one record of small ones, and what the layer holds is told of although the socket has
 * nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/options/options.h"
#include "mux/pipe/pipe.h"
#include "mux/session/greeting.h"
#include "bounded_send.h"
#include "loopback.h"
#include "toy_layer.h"

#define PATIENCE (2 * NS_PER_SEC)

enum { RUNS = 64, MESSAGES = RUN_SIZE / WIRE_MESSAGE_MAX, SCRATCH = 1 << 18 };

static struct {
	struct settings settings;
	struct pipe_shared shared;
	struct toy_layers rp_toys, lp_toys;
	struct conduit rp, lp;		/* after the handshake */
	struct greeting *g[2];
	bool failed[2];
	enum greeting_failure why[2];
	size_t read_at_once;
	struct pipe *writer, *reader;
	unsigned int messages, pause_at, ended;
	unsigned int acked;
	size_t held;			/* as was asked with what was acknowledged last, */
	uint32_t asked_of;		/* the last byte of that */
	int end;
	uint32_t next;
} here;

/* --- a greeting through a layer --- */

static void came(struct greeting *g, const struct wire_ext *said)
{
	assert_int_equal(said->type, WIRE_HELLO);
	here.rp = greeting_take(g);
	here.g[0] = NULL;
}

static void failed(struct greeting *g, enum greeting_failure why)
{
	int side = g == here.g[0] ? 0 : 1;

	here.failed[side] = true;
	here.why[side] = why;
	if (why == GREETING_STRANGER)
		assert_string_equal(greeting_why(g), "the words differ");
	greeting_free(g);
	here.g[side] = NULL;
}

static const struct greeting_ops greeting_ops = { .came = came, .failed = failed };

static void greet(const char *rp, const char *lp)
{
	struct wire_hello hello;
	int fd[2];

	tcp_pair(fd);
	toy_layers_init(&here.rp_toys, rp);
	toy_layers_init(&here.lp_toys, lp);
	assert_int_equal(greet_hello(&hello, 1), 0);
	assert_int_equal(conduit_open(&here.rp, &here.rp_toys.layers, fd[0],
				      true), 0);
	assert_int_equal(conduit_open(&here.lp, &here.lp_toys.layers, fd[1],
				      false), 0);
	here.g[0] = greeting_await(here.shared.loop, here.rp, PATIENCE,
				   &greeting_ops, NULL);
	here.g[1] = greeting_say(here.shared.loop, here.lp, &hello, PATIENCE,
				 &greeting_ops, NULL);
}

static bool rp_knows(void *arg)
{
	(void)arg;
	return !here.g[0];
}

static bool both_know(void *arg)
{
	(void)arg;
	return !here.g[0] && !here.g[1];
}

static void who_has_another_word_is_a_stranger(void **state)
{
	(void)state;
	greet("one", "two");
	assert_true(run_until(here.shared.loop, "an end", both_know, NULL));
	assert_true(here.failed[0]);
	assert_int_equal(here.why[0], GREETING_STRANGER);
	assert_true(here.failed[1]);
	assert_int_equal(here.why[1], GREETING_CLOSED);
	assert_int_equal(here.rp_toys.there + here.lp_toys.there, 0);
}

static void who_has_no_memory_says_nothing_of_the_other_end(void **state)
{
	(void)state;
	greet("one", "one");
	here.rp_toys.is_short = true;
	assert_true(run_until(here.shared.loop, "an end", both_know, NULL));
	assert_true(here.failed[0]);
	assert_int_equal(here.why[0], GREETING_SHORT);
	assert_true(here.failed[1]);
	assert_int_equal(here.why[1], GREETING_CLOSED);
}

/* --- pipes --- */

static bool message(struct pipe *p, const struct wire_msg *msg, uint64_t offset)
{
	(void)offset;
	assert_int_equal(msg->number, here.next++);
	if (++here.messages == here.pause_at)
		pipe_pause(p, true);
	return true;
}

static void readable(struct pipe *p)
{
	here.shared.scratch_used = 0;
	pipe_read(p, here.read_at_once);
}

static void writable(struct pipe *p)
{
	pipe_want(p, false);
}

static void ended(struct pipe *p, int err)
{
	(void)p;
	here.ended++;
	here.end = err;
}

static void acked(struct pipe *p, const struct ack_asked *what, int64_t at)
{
	(void)p;
	assert_true(at >= what->sent_at);
	here.acked++;
	here.held = what->held;
	here.asked_of = what->last;
}

static size_t in_flight(const struct pipe *p)
{
	(void)p;
	return 0;
}

static const struct pipe_ops pipe_ops = {
	.message = message, .readable = readable, .writable = writable,
	.ended = ended, .acked = acked, .in_flight = in_flight,
};

static void make_pipes(void)
{
	greet("same", "same");
	assert_true(run_until(here.shared.loop, "HELLO", rp_knows, NULL));
	assert_false(here.failed[0]);
	here.lp = greeting_take(here.g[1]);
	here.g[1] = NULL;
	here.writer = pipe_new(&here.shared, &pipe_ops, NULL, here.rp);
	bounded_send.fd = here.writer->fd;
	here.reader = pipe_new(&here.shared, &pipe_ops, NULL, here.lp);
	assert_non_null(here.writer);
	assert_non_null(here.reader);
}

/* Full-sized messages, and one byte behind them. */
static struct run *a_run(unsigned int messages, uint32_t *number)
{
	struct run *run = messages > MESSAGES ? run_get_large(&here.shared.pool) :
						run_get(&here.shared.pool);

	run->id = 1;
	for (unsigned int i = 0; i < messages; i++) {
		size_t len = i + 1 < messages ? WIRE_PAYLOAD_MAX : 1;

		wire_put_data(run->buf + run->len, 1, (*number)++, len);
		run->len += WIRE_HEADER + len;
		run->messages++;
	}
	return run;
}

static bool all_came(void *arg)
{
	return here.messages == *(const unsigned int *)arg;
}

static bool has_ended(void *arg)
{
	(void)arg;
	return here.ended > 0;
}

static void runs_that_wait_are_not_made_into_records(void **state)
{
	unsigned int all = RUNS * MESSAGES;
	uint32_t number = 0;

	(void)state;
	make_pipes();
	pipe_pause(here.reader, true);
	for (int i = 0; i < RUNS; i++)
		pipe_send(here.writer, a_run(MESSAGES, &number));
	assert_non_null(here.writer->queue);
	assert_non_null(here.writer->queue->next);
	assert_true(here.writer->layer->out_len > 0);
	assert_true(here.writer->layer->out_len <=
		    layer_len(here.writer->layer, here.writer->queue->len));
	for (struct run *run = here.writer->queue->next; run; run = run->next)
		assert_int_equal(run->sent, 0);
	pipe_pause(here.reader, false);
	assert_true(run_until(here.shared.loop, "all messages", all_came, &all));
	assert_null(here.writer->queue);
	assert_int_equal(here.writer->queued, 0);
	assert_int_equal(here.writer->layer->out_len, 0);
}

/* What a layer has said for itself lies in front of a run, and is none. */
static void records_of_the_layer_itself_are_no_run(void **state)
{
	uint8_t said[WIRE_HEADER + 1];
	unsigned int all = 3;
	struct layer *l;
	uint32_t number = 1;

	(void)state;
	make_pipes();
	l = here.writer->layer;
	wire_put_data(said, 1, 0, 1);
	assert_int_equal(l->ops->seal(l, said, sizeof(said)), 0);
	pipe_send(here.writer, a_run(2, &number));
	assert_true(run_until(here.shared.loop, "all messages", all_came, &all));
	assert_int_equal(here.writer->queued, 0);
	assert_int_equal(l->out_len, 0);
}

static bool is_told(void *arg)
{
	return here.acked == *(const unsigned int *)arg;
}

/* --- a long run in portions --- */

enum {
	LONG = RUN_MESSAGES,
	LONG_LEN = (LONG - 1) * WIRE_MESSAGE_MAX + WIRE_HEADER + 1,
	PORTION = LAYER_PORTION / TOY_RECORD * TOY_RECORD,
	PORTIONS = (LONG_LEN + PORTION - 1) / PORTION,
};

static bool is_written(void *left)
{
	return !*(const size_t *)left;
}

static void a_long_run_is_sealed_portion_by_portion(void **state)
{
	unsigned int all = LONG;
	uint32_t number = 0;
	struct layer *l;

	(void)state;
	make_pipes();
	l = here.writer->layer;
	bounded_send.bounded = true;
	pipe_send(here.writer, a_run(LONG, &number));
	assert_int_equal(l->out_len, layer_len(l, PORTION));
	bounded_send.takes = 10;
	assert_true(run_until(here.shared.loop, "some", is_written, &bounded_send.takes));
	assert_int_equal(l->out_len, layer_len(l, PORTION) - 10);
	assert_int_equal(here.writer->queued, LONG_LEN - 10);
	bounded_send.calls = bounded_send.more = 0;
	bounded_send.bounded = false;
	assert_true(run_until(here.shared.loop, "all messages", all_came, &all));
	assert_in_range(bounded_send.calls, PORTIONS, 4 * PORTIONS);
	/* All but the last: its end is nothing to wait for. */
	assert_in_range(bounded_send.more, PORTIONS - 1, bounded_send.calls - 1);
	assert_int_equal(here.writer->tx_bytes, layer_len(l, LONG_LEN));
	assert_int_equal(here.writer->queued, 0);
}

static void the_end_of_a_long_run_is_what_is_acknowledged(void **state)
{
	unsigned int one = 1;
	uint32_t number = 0;

	(void)state;
	make_pipes();
	pipe_ask(here.writer, 1, 0);
	pipe_send(here.writer, a_run(LONG, &number));
	assert_true(run_until(here.shared.loop, "a stamp", is_told, &one));
	assert_int_equal(here.asked_of, here.writer->tx_bytes - 1);
}

/* --- small runs in one record --- */

enum { SMALL = WIRE_HEADER + 1 };

static void send_small(unsigned int runs, uint32_t *number)
{
	while (runs--)
		pipe_send(here.writer, a_run(1, number));
}

static size_t waiting(void)
{
	size_t bytes = 0;

	for (const struct run *run = here.writer->queue; run; run = run->next)
		bytes += run->len - run->sent;
	return bytes;
}

static void small_ones_of_a_batch_are_one_record(void **state)
{
	unsigned int all = 6;
	uint32_t number = 0;

	(void)state;
	make_pipes();
	gathering_begin(&here.shared.gathering);
	for (unsigned int i = 1; i <= all; i++) {
		send_small(1, &number);
		assert_int_equal(pipe_end_of(here.writer, 0),
				 TOY_OVERHEAD + i * SMALL);
	}
	/* No record is made ahead of the call that writes it. */
	assert_int_equal(here.writer->layer->out_len, 0);
	assert_int_equal(bounded_send.calls, 0);
	gathering_end(&here.shared.gathering);
	assert_int_equal(bounded_send.calls, 1);
	assert_int_equal(here.writer->tx_bytes, TOY_OVERHEAD + all * SMALL);
	assert_int_equal(here.writer->tx_joined, all - 1);
	assert_null(here.writer->queue);
	assert_true(run_until(here.shared.loop, "all messages", all_came, &all));
}

/* A segment is full with what the record adds. */
static void a_segment_of_records_does_not_wait(void **state)
{
	uint32_t number = 0;

	(void)state;
	make_pipes();
	gathering_begin(&here.shared.gathering);
	here.writer->info.mss = 10 * SMALL + TOY_OVERHEAD;
	send_small(9, &number);
	assert_int_equal(bounded_send.calls, 0);
	send_small(1, &number);
	assert_int_equal(bounded_send.calls, 1);
	assert_int_equal(here.writer->tx_bytes, here.writer->info.mss);
	gathering_end(&here.shared.gathering);
}

/* What does not fit in is a record of its own, and nothing before it waits for its end. */
static void a_record_of_several_is_within_a_segment(void **state)
{
	unsigned int all = 3;
	uint32_t number = 0;

	(void)state;
	make_pipes();
	gathering_begin(&here.shared.gathering);
	here.writer->info.mss = 2 * SMALL + TOY_OVERHEAD + 1;
	send_small(2, &number);
	assert_int_equal(bounded_send.calls, 0);
	send_small(1, &number);
	assert_int_equal(bounded_send.calls, 2);
	assert_int_equal(here.writer->tx_bytes, all * SMALL + 2 * TOY_OVERHEAD);
	gathering_end(&here.shared.gathering);
	assert_true(run_until(here.shared.loop, "all messages", all_came, &all));
}

/* Nobody can have parsed any of them before the last byte of the record is there. */
static void none_of_a_record_is_written_before_all_of_it(void **state)
{
	enum { RUNS_OF_IT = 5, LEN = TOY_OVERHEAD + RUNS_OF_IT * SMALL };
	unsigned int all = RUNS_OF_IT;
	uint32_t number = 0;

	(void)state;
	make_pipes();
	bounded_send.bounded = true;
	gathering_begin(&here.shared.gathering);
	send_small(all, &number);
	gathering_end(&here.shared.gathering);
	for (size_t written = 1; written <= LEN; written++) {
		assert_int_equal(here.writer->tx_bytes, written - 1);
		assert_true(pipe_is_blocked(here.writer));
		for (struct run *run = here.writer->queue; run; run = run->next)
			assert_true(run->sent < run->len);
		assert_int_equal(here.writer->queued, waiting());
		assert_in_range(here.writer->queued, 1, LEN - written + RUNS_OF_IT);
		bounded_send.takes = 1;
		run_round(here.shared.loop);
	}
	assert_null(here.writer->queue);
	assert_int_equal(here.writer->queued, 0);
	bounded_send.bounded = false;
	assert_true(run_until(here.shared.loop, "all messages", all_came, &all));
}

/* Of what waits for the socket, too: records are as full as whole runs make them. */
static void what_waits_goes_in_full_records(void **state)
{
	enum { IN_ONE = TOY_RECORD / SMALL, WAIT = 3 * IN_ONE + 1 };
	unsigned int all = WAIT + 2 + 1;
	uint32_t number = 0;
	struct run *large;

	(void)state;
	make_pipes();
	bounded_send.bounded = true;
	send_small(WAIT, &number);	/* the first is sealed by itself */
	large = a_run(2, &number);
	pipe_send(here.writer, large);
	send_small(1, &number);
	assert_int_equal(here.writer->sealed, 1);
	bounded_send.bounded = false;
	assert_true(run_until(here.shared.loop, "all messages", all_came, &all));
	/* One, three full ones, those of the large run, and one. */
	assert_int_equal(bounded_send.calls, 1 + 3 + 1 + 1);
	assert_int_equal(here.writer->queued, 0);
	assert_int_equal(here.writer->sealed, 0);
}

/* The kernel counts what it was given: records, which are longer than what is in them. */
static void acknowledgements_of_records_are_told(void **state)
{
	uint32_t number = 0;

	(void)state;
	make_pipes();
	for (unsigned int times = 1; times <= 3; times++) {
		pipe_ask(here.writer, times, 0);
		pipe_send(here.writer, a_run(2, &number));
		assert_true(run_until(here.shared.loop, "a stamp", is_told,
				      &times));
		assert_int_equal(here.held, times);
	}
}

/* The socket is empty long before: nothing but the layer tells of the rest. */
static void what_the_layer_holds_is_read_in_any_pieces(void **state)
{
	unsigned int all = 100;
	uint32_t number = 0;

	(void)state;
	here.read_at_once = 7;
	make_pipes();
	for (unsigned int i = 0; i < all; i++)
		pipe_send(here.writer, a_run(1, &number));
	assert_true(run_until(here.shared.loop, "all messages", all_came, &all));
}

static void a_pipe_that_is_paused_hears_of_what_is_held_when_it_is_not(void **state)
{
	unsigned int one = 1, all = 2;
	uint32_t number = 0;

	(void)state;
	here.read_at_once = WIRE_MESSAGE_MAX;
	here.pause_at = 1;
	make_pipes();
	pipe_send(here.writer, a_run(2, &number));
	assert_true(run_until(here.shared.loop, "the first", all_came, &one));
	for (int i = 0; i < 5; i++)
		run_round(here.shared.loop);
	assert_int_equal(here.messages, 1);
	pipe_pause(here.reader, false);
	assert_true(run_until(here.shared.loop, "the others", all_came, &all));
}

static void messages_leave_room_for_a_record(void **state)
{
	size_t plain, sealed;

	(void)state;
	make_pipes();
	here.writer->info.mss = 1448;
	here.writer->allowance = 4096;
	sealed = pipe_payload(here.writer);
	here.writer->layer = NULL;
	plain = pipe_payload(here.writer);
	here.writer->layer = here.rp.layer;
	here.shared.large = true;	/* no matter: records are to be filled */
	assert_int_equal(plain - sealed, TOY_OVERHEAD);
	here.writer->allowance = 1 << 19;	/* from here on whole ones fill records */
	assert_int_equal(WIRE_HEADER + pipe_payload(here.writer), TOY_RECORD);
}

static void an_end_that_is_said_is_one(void **state)
{
	(void)state;
	make_pipes();
	pipe_shut(here.writer);
	assert_true(run_until(here.shared.loop, "the end", has_ended, NULL));
	assert_int_equal(here.end, 0);
}

static void an_end_that_is_not_said_is_a_reset(void **state)
{
	(void)state;
	make_pipes();
	shutdown(here.writer->fd, SHUT_WR);
	assert_true(run_until(here.shared.loop, "the end", has_ended, NULL));
	assert_int_equal(here.end, -ECONNRESET);
}

static void a_record_that_is_cut_is_a_reset(void **state)
{
	(void)state;
	make_pipes();
	assert_int_equal(send(here.writer->fd, "\0\7abc", 5, 0), 5);
	shutdown(here.writer->fd, SHUT_WR);
	assert_true(run_until(here.shared.loop, "the end", has_ended, NULL));
	assert_int_equal(here.end, -ECONNRESET);
	assert_int_equal(here.messages, 0);
}

/* --- the scene --- */

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	bounded_send = (struct bounded_send){ .fd = -1 };
	settings_init(&here.settings);
	here.read_at_once = SCRATCH - WIRE_MESSAGE_MAX;
	here.shared.loop = loop_new();
	here.shared.settings = &here.settings;
	here.shared.scratch = malloc(SCRATCH);
	here.shared.scratch_size = SCRATCH;
	return here.shared.scratch ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	pipe_free(here.writer);
	pipe_free(here.reader);
	assert_int_equal(here.rp_toys.there + here.lp_toys.there, 0);
	run_pool_fini(&here.shared.pool);
	free(here.shared.scratch);
	loop_free(here.shared.loop);
	return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(who_has_another_word_is_a_stranger),
		T(who_has_no_memory_says_nothing_of_the_other_end),
		T(runs_that_wait_are_not_made_into_records),
		T(records_of_the_layer_itself_are_no_run),
		T(a_long_run_is_sealed_portion_by_portion),
		T(the_end_of_a_long_run_is_what_is_acknowledged),
		T(small_ones_of_a_batch_are_one_record),
		T(a_segment_of_records_does_not_wait),
		T(a_record_of_several_is_within_a_segment),
		T(none_of_a_record_is_written_before_all_of_it),
		T(what_waits_goes_in_full_records),
		T(acknowledgements_of_records_are_told),
		T(what_the_layer_holds_is_read_in_any_pieces),
		T(a_pipe_that_is_paused_hears_of_what_is_held_when_it_is_not),
		T(messages_leave_room_for_a_record),
		T(an_end_that_is_said_is_one),
		T(an_end_that_is_not_said_is_a_reset),
		T(a_record_that_is_cut_is_a_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
