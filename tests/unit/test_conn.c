/* SPDX-License-Identifier: MIT */
/*
 * One connection between a real socket and messages: how it frames, delivers
 * and above all how it ends.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/settings/settings.h"
#include "mux/wire/run.h"
#include "conn_scene.h"
#include "random.h"

/* --- towards the pipes --- */

static void any_writes_become_the_same_bytes(void **state)
{
	struct scene *scene = *state;
	size_t written = 0, target;
	struct random r;

	random_begin(&r, __func__);
	scene_attach(scene);
	target = random_range(&r, 1, BULK);
	while (written < target || scene->framed_len < written) {
		size_t n = random_range(&r, 1, 200000);
		ssize_t sent;

		n = n < target - written ? n : target - written;
		sent = send(scene->app, bulk + written, n, MSG_NOSIGNAL);
		written += sent > 0 ? (size_t)sent : 0;
		run_round(scene->loop);
		if (scene->c->ready)
			scene_frame(scene, random_range(&r, 1, RUN_SIZE),
			      random_range(&r, 1, WIRE_PAYLOAD_MAX));
	}
	assert_memory_equal(scene->framed, bulk, written);
	assert_int_equal(scene->c->tx_bytes, written);
	assert_int_equal(scene->c->tx_messages, scene->number);
	assert_int_equal(scene->overs, 0);
}

static void the_syn_comes_first(void **state)
{
	struct scene *scene = *state;

	scene->c->syn_pending = true;
	scene_attach(scene);
	assert_int_equal(send(scene->app, "hello", 5, 0), 5);
	scene_frame_all(scene);
	assert_int_equal(scene->syns, 1);
	assert_int_equal(scene->number, 2);
	assert_memory_equal(scene->framed, "hello", 5);
	assert_false(scene->c->ready);
	assert_int_equal(send(scene->app, "again", 5, 0), 5);
	scene_frame_all(scene);
	assert_int_equal(scene->syns, 1);
	assert_int_equal(scene->number, 3);
}

static void the_fin_comes_behind_all_data(void **state)
{
	struct scene *scene = *state;

	scene_attach(scene);
	assert_int_equal(send(scene->app, bulk, 100000, 0), 100000);
	shutdown(scene->app, SHUT_WR);
	assert_true(run_until(scene->loop, "the FIN", fin_is_framed, scene));
	assert_int_equal(scene->fin, WIRE_REASON_FIN);
	assert_int_equal(scene->framed_len, 100000);
	assert_memory_equal(scene->framed, bulk, 100000);
	assert_app_ends(scene, 0);
	assert_ended(scene, CONN_END_LOCAL_FIN);
}

static void a_reset_becomes_a_fin_0x99(void **state)
{
	struct scene *scene = *state;
	struct linger hard = { .l_onoff = 1 };

	scene_attach(scene);
	scene_frame_all(scene);
	setsockopt(scene->app, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(scene->app);
	scene->app = -1;
	assert_true(run_until(scene->loop, "the FIN", fin_is_framed, scene));
	assert_int_equal(scene->fin, WIRE_REASON_RST);
	assert_ended(scene, CONN_END_LOCAL_RESET);
}

/* --- towards the application --- */

static void a_slow_reader_gets_everything(void **state)
{
	struct scene *scene = *state;
	size_t waiting;

	scene_attach(scene);
	scene_deliver(scene, 0, BULK);
	waiting = conn_queued(scene->c);
	assert_true(waiting > 0);
	assert_true(run_until(scene->loop, "all bytes", app_read_all, scene));
	assert_memory_equal(scene->got, bulk, BULK);
	assert_int_equal(scene->queued, waiting);
	assert_int_equal(scene->released, waiting);
	assert_int_equal(conn_queued(scene->c), 0);
	assert_int_equal(scene->overs, 0);
}

static void a_fin_waits_for_what_is_queued(void **state)
{
	struct scene *scene = *state;
	size_t waiting;

	scene_attach(scene);
	scene_deliver(scene, 0, BULK - 1);
	waiting = conn_queued(scene->c);
	assert_true(waiting > 0);
	conn_finish(scene->c, WIRE_REASON_FIN);
	assert_int_equal(scene->overs, 1);
	assert_int_equal(scene->gones, 0);
	assert_app_ends(scene, 0);
	assert_int_equal(scene->got_len, BULK - 1);
	assert_memory_equal(scene->got, bulk, BULK - 1);
	assert_int_equal(scene->released, waiting);
	assert_ended(scene, CONN_END_PEER_FIN);
	assert_int_equal(scene->number, 0);	/* a FIN answers no FIN */
}

static void a_0x99_discards_what_is_queued(void **state)
{
	struct scene *scene = *state;
	size_t waiting;

	scene_attach(scene);
	scene_deliver(scene, 0, BULK - 1);
	waiting = conn_queued(scene->c);
	assert_true(waiting > 0);
	conn_finish(scene->c, WIRE_REASON_RST);
	assert_int_equal(scene->released, waiting);
	assert_ended(scene, CONN_END_PEER_RESET);
	assert_app_ends(scene, -ECONNRESET);
}

static void nothing_is_delivered_after_the_end(void **state)
{
	struct scene *scene = *state;

	scene_attach(scene);
	scene_deliver(scene, 0, 10);
	conn_finish(scene->c, WIRE_REASON_FIN);
	scene_deliver(scene, 10, 20);
	assert_app_ends(scene, 0);
	assert_int_equal(scene->got_len, 10);
	assert_ended(scene, CONN_END_PEER_FIN);
}

static void who_sends_on_after_a_fin_is_reset(void **state)
{
	struct scene *scene = *state;
	int64_t began = loop_clock();
	ssize_t n;

	scene_attach(scene);
	conn_finish(scene->c, WIRE_REASON_FIN);
	do {
		n = send(scene->app, bulk, 1000, MSG_NOSIGNAL);
		run_round(scene->loop);
	} while ((n > 0 || errno == EAGAIN) &&
		 loop_clock() < began + 3 * LINGER_MS * NS_PER_MS);
	assert_true(n < 0 && (errno == ECONNRESET || errno == EPIPE));
	assert_ended(scene, CONN_END_PEER_FIN);
}

/* A reader that is still at it when the connection is long closed here. */
static void who_reads_slowly_after_a_fin_loses_nothing(void **state)
{
	struct scene *scene = *state;

	scene_attach(scene);
	scene_deliver(scene, 0, 50000);
	conn_finish(scene->c, WIRE_REASON_FIN);
	assert_ended(scene, CONN_END_PEER_FIN);
	assert_app_ends(scene, 0);
	assert_int_equal(scene->got_len, 50000);
}

/* --- opening --- */

static void early_data_waits_for_the_connect(void **state)
{
	struct scene *scene = *state;
	uint16_t port;
	int listener = tcp_listen(1, &port);

	assert_int_equal(conn_connecting(scene->c, tcp_connect(port),
					 NS_PER_SEC), 0);
	scene_deliver(scene, 0, 5000);
	assert_int_equal(conn_queued(scene->c), 5000);
	conn_finish(scene->c, WIRE_REASON_FIN);
	scene->app = tcp_accept(listener);
	close(listener);
	assert_app_ends(scene, 0);
	assert_int_equal(scene->got_len, 5000);
	assert_memory_equal(scene->got, bulk, 5000);
	assert_ended(scene, CONN_END_PEER_FIN);
}

static void a_refused_connect_is_told(void **state)
{
	struct scene *scene = *state;
	uint16_t port;

	close(tcp_listen(1, &port));
	assert_int_equal(conn_connecting(scene->c, tcp_connect(port),
					 NS_PER_SEC), 0);
	scene_deliver(scene, 0, 5000);
	assert_true(run_until(scene->loop, "the FIN", fin_is_framed, scene));
	assert_int_equal(scene->fin, WIRE_REASON_RST);
	assert_int_equal(scene->number, 1);
	assert_int_equal(scene->released, 5000);
	assert_ended(scene, CONN_END_REFUSED);
}

static void a_connect_times_out(void **state)
{
	struct scene *scene = *state;
	int64_t began = loop_clock();
	int filler[2], listener;
	uint16_t port;

	/* A full backlog answers no SYN. */
	listener = tcp_listen(0, &port);
	filler[0] = tcp_connect(port);
	filler[1] = tcp_connect(port);
	assert_int_equal(conn_connecting(scene->c, tcp_connect(port),
					 100 * NS_PER_MS), 0);
	assert_true(run_until(scene->loop, "the FIN", fin_is_framed, scene));
	assert_int_equal(scene->fin, WIRE_REASON_RST);
	assert_true(loop_clock() - began >= 100 * NS_PER_MS);
	assert_ended(scene, CONN_END_TIMEOUT);
	close(filler[0]);
	close(filler[1]);
	close(listener);
}

/* --- a limit to what is left to do --- */

static int overfull_listener(uint16_t *port, int filler[2])
{
	int listener = tcp_listen(0, port);	/* it answers no third SYN */

	filler[0] = tcp_connect(*port);
	filler[1] = tcp_connect(*port);
	return listener;
}

static void a_connect_does_not_outlast_the_limit(void **state)
{
	struct scene *scene = *state;
	int64_t began = loop_clock();
	int filler[2], listener;
	uint16_t port;

	listener = overfull_listener(&port, filler);
	assert_int_equal(conn_connecting(scene->c, tcp_connect(port),
					 3600 * NS_PER_SEC), 0);
	scene_deliver(scene, 0, 5000);
	conn_finish(scene->c, WIRE_REASON_FIN);
	conn_limit_time(scene->c, 200 * NS_PER_MS);
	assert_ended(scene, CONN_END_PEER_FIN);
	assert_true(loop_clock() - began >= 200 * NS_PER_MS);
	close(filler[0]);
	close(filler[1]);
	close(listener);
}

/* The limit was set while it still connected; its reader reads nothing. */
static void what_drains_after_its_connect_does_not_either(void **state)
{
	struct scene *scene = *state;
	int64_t began = loop_clock();
	uint16_t port;
	int listener = tcp_listen(1, &port);

	assert_int_equal(conn_connecting(scene->c, tcp_connect(port),
					 NS_PER_SEC), 0);
	scene_deliver(scene, 0, BULK);
	conn_finish(scene->c, WIRE_REASON_FIN);
	conn_limit_time(scene->c, 500 * NS_PER_MS);
	scene->app = tcp_accept(listener);
	close(listener);
	assert_ended(scene, CONN_END_PEER_FIN);
	assert_true(loop_clock() - began >= 500 * NS_PER_MS);
	assert_app_ends(scene, -ECONNRESET);
}

/* --- ending it from here --- */

static void a_refusal_is_told_once(void **state)
{
	struct scene *scene = *state;

	scene_attach(scene);
	assert_int_equal(send(scene->app, "hello", 5, 0), 5);
	scene_frame_all(scene);
	conn_reset(scene->c, CONN_END_LIMIT);
	conn_reset(scene->c, CONN_END_PROTOCOL);
	assert_true(run_until(scene->loop, "the FIN", fin_is_framed, scene));
	assert_int_equal(scene->fin, WIRE_REASON_RST);
	assert_int_equal(scene->number, 2);
	assert_app_ends(scene, -ECONNRESET);
	assert_ended(scene, CONN_END_LIMIT);
}

static void nobody_is_told_of_what_they_never_heard_of(void **state)
{
	struct scene *scene = *state;

	scene->c->syn_pending = true;
	scene_attach(scene);
	conn_reset(scene->c, CONN_END_LIMIT);
	assert_ended(scene, CONN_END_LIMIT);
	assert_int_equal(scene->number, 0);
	assert_app_ends(scene, -ECONNRESET);
}

static void an_abort_resets_and_says_nothing(void **state)
{
	struct scene *scene = *state;

	scene_attach(scene);
	scene_deliver(scene, 0, BULK - 1);
	conn_abort(scene->c, CONN_END_SESSION);
	conn_abort(scene->c, CONN_END_SHUTDOWN);
	assert_ended(scene, CONN_END_SESSION);
	assert_int_equal(scene->number, 0);
	assert_app_ends(scene, -ECONNRESET);
}

static void what_was_held_is_dropped_with_it(void **state)
{
	struct wire_msg early = {
		.type = WIRE_DATA, .id = ID, .number = 9,
		.body = bulk, .body_len = 1000,
	};
	struct scene *scene = *state;
	size_t held;

	reorder_put(&scene->c->reorder, &early, 0);
	held = reorder_bytes(&scene->c->reorder);
	assert_true(held > 1000);
	conn_abort(scene->c, CONN_END_SESSION);
	assert_int_equal(scene->held_released, held);
	assert_ended(scene, CONN_END_SESSION);
}

/* Closing the descriptor is all that a killed process does. */
static void a_killed_process_leaves_a_reset(void **state)
{
	struct scene *scene = *state;

	scene_attach(scene);
	scene_deliver(scene, 0, 100);
	conn_free(scene->c);
	scene->c = NULL;
	assert_app_ends(scene, -ECONNRESET);
}

#define CONN_TEST(f) \
	cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(any_writes_become_the_same_bytes),
		CONN_TEST(the_syn_comes_first),
		CONN_TEST(the_fin_comes_behind_all_data),
		CONN_TEST(a_reset_becomes_a_fin_0x99),
		CONN_TEST(a_slow_reader_gets_everything),
		CONN_TEST(a_fin_waits_for_what_is_queued),
		CONN_TEST(a_0x99_discards_what_is_queued),
		CONN_TEST(nothing_is_delivered_after_the_end),
		CONN_TEST(who_sends_on_after_a_fin_is_reset),
		CONN_TEST(who_reads_slowly_after_a_fin_loses_nothing),
		CONN_TEST(early_data_waits_for_the_connect),
		CONN_TEST(a_refused_connect_is_told),
		CONN_TEST(a_connect_times_out),
		CONN_TEST(a_connect_does_not_outlast_the_limit),
		CONN_TEST(what_drains_after_its_connect_does_not_either),
		CONN_TEST(a_refusal_is_told_once),
		CONN_TEST(nobody_is_told_of_what_they_never_heard_of),
		CONN_TEST(an_abort_resets_and_says_nothing),
		CONN_TEST(what_was_held_is_dropped_with_it),
		CONN_TEST(a_killed_process_leaves_a_reset),
	};
	struct random r = { .state = 1 };

	random_fill(&r, bulk, sizeof(bulk));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
