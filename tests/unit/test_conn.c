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

#include "loopback.h"
#include "mux/config.h"
#include "mux/conn.h"
#include "mux/run.h"
#include "random.h"

enum { BULK = 6 << 20, ID = 77 };

/* The connection, its application's end, and what it told its owner. */
struct scene {
	struct loop *loop;
	struct conn *c;
	int app;		/* the application's socket, or -1 */
	int readies, idles, overs, gones;
	size_t released, held_released;
	enum conn_end end;

	uint32_t number;	/* of the next message it frames */
	uint8_t *framed;	/* payloads so far */
	size_t framed_len;
	int syns;
	int fin;		/* the FIN's reason, 0 before it */

	uint8_t *got;		/* what the application read */
	size_t got_len;
	long got_end;		/* 0: end; -errno; 1: still open */
};

static uint8_t bulk[BULK];

static void on_ready(struct conn *c)
{
	((struct scene *)c->owner)->readies++;
}

static void on_idle(struct conn *c)
{
	((struct scene *)c->owner)->idles++;
}

static void on_released(struct conn *c, size_t queued, size_t held)
{
	((struct scene *)c->owner)->released += queued;
	((struct scene *)c->owner)->held_released += held;
}

static void on_over(struct conn *c)
{
	((struct scene *)c->owner)->overs++;
}

static void on_gone(struct conn *c)
{
	struct scene *scene = c->owner;

	scene->gones++;
	scene->end = c->end;
	scene->c = NULL;
	conn_free(c);
}

static const struct conn_ops ops = {
	.ready = on_ready,
	.idle = on_idle,
	.released = on_released,
	.over = on_over,
	.gone = on_gone,
};

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->loop = loop_new();
	scene->c = conn_new(scene->loop, &ops, scene, ID);
	scene->app = -1;
	scene->framed = malloc(BULK);
	scene->got = malloc(BULK);
	scene->got_end = 1;
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	if (scene->c)
		conn_free(scene->c);
	if (scene->app >= 0)
		close(scene->app);
	loop_free(scene->loop);
	free(scene->framed);
	free(scene->got);
	free(scene);
	return 0;
}

/* Its socket as that of a connection which stands. */
static void attach(struct scene *scene)
{
	int fd[2];

	tcp_pair(fd);
	scene->app = fd[1];
	assert_int_equal(conn_attach(scene->c, fd[0]), 0);
}

/* --- what it frames --- */

static void take_message(struct scene *scene, const struct wire_msg *msg,
			 size_t payload)
{
	assert_int_equal(msg->id, ID);
	assert_int_equal(msg->number, scene->number);
	assert_int_equal(scene->fin, 0);	/* nothing behind it */
	scene->number++;
	switch (msg->type) {
	case WIRE_SYN:
		scene->syns++;
		break;
	case WIRE_FIN:
		scene->fin = msg->body[0];
		break;
	case WIRE_DATA:
		assert_in_range(msg->body_len, 1, payload);
		assert_true(scene->framed_len + msg->body_len <= BULK);
		memcpy(scene->framed + scene->framed_len, msg->body,
		       msg->body_len);
		scene->framed_len += msg->body_len;
	}
}

/* One conn_frame(), held to its contract. */
static void frame(struct scene *scene, size_t budget, size_t payload)
{
	struct run_pool pool = { 0 };
	struct run *run = run_get(&pool);
	size_t before = scene->framed_len, at = 0;
	struct wire_msg msg;
	bool more = conn_frame(scene->c, run, budget, payload);
	uint32_t messages = 0;
	int n;

	assert_int_equal(more, scene->c->ready);
	assert_int_equal(run->id, ID);
	assert_int_equal(run->first, scene->number);
	assert_true(run->len <= run->size);
	while ((n = wire_read(run->buf + at, run->len - at, &msg)) > 0) {
		take_message(scene, &msg, payload);
		at += (size_t)n;
		messages++;
	}
	assert_int_equal(at, run->len);
	assert_int_equal(messages, run->messages);
	assert_in_range(messages, 0, RUN_MESSAGES);
	assert_in_range(scene->framed_len - before, 0, budget);
	run_put(&pool, run);
	run_pool_fini(&pool);
}

/* Lets events come in, and frames whatever it has. */
static void frame_all(struct scene *scene)
{
	run_round(scene->loop);
	while (scene->c && scene->c->ready)
		frame(scene, RUN_SIZE, WIRE_PAYLOAD_MAX);
}

static bool fin_is_framed(void *arg)
{
	struct scene *scene = arg;

	while (scene->c && scene->c->ready)
		frame(scene, RUN_SIZE, WIRE_PAYLOAD_MAX);
	return scene->fin != 0;
}

static bool is_gone(void *arg)
{
	return ((struct scene *)arg)->gones > 0;
}

static void assert_ended(struct scene *scene, enum conn_end end)
{
	assert_true(run_until(scene->loop, "gone()", is_gone, scene));
	assert_int_equal(scene->gones, 1);
	assert_int_equal(scene->overs, 1);
	assert_int_equal(scene->end, end);
	assert_int_equal(scene->readies, scene->idles);
}

/* --- what the application sees --- */

static bool app_reads(struct scene *scene)
{
	long n;

	do {
		n = read_some(scene->app, scene->got + scene->got_len,
			      BULK - scene->got_len);
		if (n > 0)
			scene->got_len += (size_t)n;
	} while (n > 0 && scene->got_len < BULK);
	if (n == 0 || (n < 0 && n != -EAGAIN))
		scene->got_end = n;
	return scene->got_end != 1;
}

static bool app_read_to_its_end(void *arg)
{
	return app_reads(arg);
}

static bool app_read_all(void *arg)
{
	struct scene *scene = arg;

	app_reads(scene);
	return scene->got_len == BULK;
}

static void assert_app_ends(struct scene *scene, long end)
{
	assert_true(run_until(scene->loop, "the application's end",
			      app_read_to_its_end, scene));
	assert_int_equal(scene->got_end, end);
}

/* In pieces as messages bring them. */
static void deliver(struct scene *scene, size_t from, size_t to)
{
	while (from < to) {
		struct iovec iov[8];
		size_t len = 0;
		int n = 0;

		while (n < 8 && from < to) {
			size_t piece = to - from < WIRE_PAYLOAD_MAX ?
				to - from : WIRE_PAYLOAD_MAX;

			iov[n].iov_base = bulk + from;
			iov[n++].iov_len = piece;
			from += piece;
			len += piece;
		}
		conn_deliver(scene->c, iov, n, len);
	}
}

/* --- towards the pipes --- */

static void any_writes_become_the_same_bytes(void **state)
{
	struct scene *scene = *state;
	size_t written = 0, target;
	struct random r;

	random_begin(&r, __func__);
	attach(scene);
	target = random_range(&r, 1, BULK);
	while (written < target || scene->framed_len < written) {
		size_t n = random_range(&r, 1, 200000);
		ssize_t sent;

		n = n < target - written ? n : target - written;
		sent = send(scene->app, bulk + written, n, MSG_NOSIGNAL);
		written += sent > 0 ? (size_t)sent : 0;
		run_round(scene->loop);
		if (scene->c->ready)
			frame(scene, random_range(&r, 1, RUN_SIZE),
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
	attach(scene);
	assert_int_equal(send(scene->app, "hello", 5, 0), 5);
	frame_all(scene);
	assert_int_equal(scene->syns, 1);
	assert_int_equal(scene->number, 2);
	assert_memory_equal(scene->framed, "hello", 5);
	assert_false(scene->c->ready);
	assert_int_equal(send(scene->app, "again", 5, 0), 5);
	frame_all(scene);
	assert_int_equal(scene->syns, 1);
	assert_int_equal(scene->number, 3);
}

static void the_fin_comes_behind_all_data(void **state)
{
	struct scene *scene = *state;

	attach(scene);
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

	attach(scene);
	frame_all(scene);
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

	attach(scene);
	deliver(scene, 0, BULK);
	waiting = scene->c->queue.len;
	assert_true(waiting > 0);
	assert_true(run_until(scene->loop, "all bytes", app_read_all, scene));
	assert_memory_equal(scene->got, bulk, BULK);
	assert_int_equal(scene->released, waiting);
	assert_int_equal(scene->c->queue.len, 0);
	assert_int_equal(scene->overs, 0);
}

static void a_fin_waits_for_what_is_queued(void **state)
{
	struct scene *scene = *state;
	size_t waiting;

	attach(scene);
	deliver(scene, 0, BULK - 1);
	waiting = scene->c->queue.len;
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

	attach(scene);
	deliver(scene, 0, BULK - 1);
	waiting = scene->c->queue.len;
	assert_true(waiting > 0);
	conn_finish(scene->c, WIRE_REASON_RST);
	assert_int_equal(scene->released, waiting);
	assert_ended(scene, CONN_END_PEER_RESET);
	assert_app_ends(scene, -ECONNRESET);
}

static void nothing_is_delivered_after_the_end(void **state)
{
	struct scene *scene = *state;

	attach(scene);
	deliver(scene, 0, 10);
	conn_finish(scene->c, WIRE_REASON_FIN);
	deliver(scene, 10, 20);
	assert_app_ends(scene, 0);
	assert_int_equal(scene->got_len, 10);
	assert_ended(scene, CONN_END_PEER_FIN);
}

static void who_sends_on_after_a_fin_is_reset(void **state)
{
	struct scene *scene = *state;
	int64_t began = loop_clock();
	ssize_t n;

	attach(scene);
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

	attach(scene);
	deliver(scene, 0, 50000);
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
	deliver(scene, 0, 5000);
	assert_int_equal(scene->c->queue.len, 5000);
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
	deliver(scene, 0, 5000);
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

/* --- ending it from here --- */

static void a_refusal_is_told_once(void **state)
{
	struct scene *scene = *state;

	attach(scene);
	assert_int_equal(send(scene->app, "hello", 5, 0), 5);
	frame_all(scene);
	conn_refuse(scene->c, CONN_END_LIMIT);
	conn_refuse(scene->c, CONN_END_PROTOCOL);
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
	attach(scene);
	conn_refuse(scene->c, CONN_END_LIMIT);
	assert_ended(scene, CONN_END_LIMIT);
	assert_int_equal(scene->number, 0);
	assert_app_ends(scene, -ECONNRESET);
}

static void an_abort_resets_and_says_nothing(void **state)
{
	struct scene *scene = *state;

	attach(scene);
	deliver(scene, 0, BULK - 1);
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
	held = scene->c->reorder.bytes;
	assert_true(held > 1000);
	conn_abort(scene->c, CONN_END_SESSION);
	assert_int_equal(scene->held_released, held);
	assert_ended(scene, CONN_END_SESSION);
}

/* Closing the descriptor is all that a killed process does. */
static void a_killed_process_leaves_a_reset(void **state)
{
	struct scene *scene = *state;

	attach(scene);
	deliver(scene, 0, 100);
	conn_free(scene->c);
	scene->c = NULL;
	assert_app_ends(scene, -ECONNRESET);
}

#define CONN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
