/* SPDX-License-Identifier: MIT */
/* Who does not read, over the extension: it stops itself alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "ext_pair.h"
#include "flow.h"
#include "loopback.h"

struct beside {
	struct flow stopped, flowing;
};

static bool flows_beside(void *arg)
{
	struct beside *b = arg;

	flow_push(&b->stopped);
	return flows(&b->flowing);
}

static void a_stopped_reader_stops_itself_alone(void **state)
{
	struct pair *pair = *state;
	struct beside b = { .stopped.all = FLOOD, .flowing.all = FLOOD };

	pair_connect(pair, 0);
	pair_connect(pair, 1);
	b.stopped.from = pair->conn[0].server;
	b.stopped.to = pair->conn[0].client;
	b.flowing.from = pair->conn[1].server;
	b.flowing.to = pair->conn[1].client;
	assert_true(run_until(pair->engine.loop, "the one that is read",
			      flows_beside, &b));
	/* What it was sent fits into its window, the sockets and no more. */
	assert_true(b.stopped.sent < FLOOD / 2);
	assert_true(pair->lp->in.queued <= pair->lp->ext->channel[1]->window);
	assert_int_equal(pair->lp->counts.pauses, 0);
	assert_true(run_until(pair->engine.loop, "the other one, too", flows,
			      &b.stopped));
}

/* Else a small object waits for a WINDOW, or a gap in it for two. */
static void a_window_begins_with_two_round_trips_of_eight_new_pipes(void **state)
{
	enum { SEGMENTS = 10, SEGMENT = 1448 };
	struct pair *pair = *state;
	const uint64_t enough = 2 * 8 * SEGMENTS * SEGMENT;

	pair_connect(pair, 0);
	assert_in_range(channel_promised(pair->lp->ext->channel[1]), enough,
			WINDOW_MOST);
	assert_in_range(channel_promised(pair->rp->ext->channel[1]), enough,
			WINDOW_MOST);
	assert_in_range(pair->lp->ext->pool.limit.conn, enough, WINDOW_MOST);
}

struct wide_reader {
	struct flow f;
	const struct channel *ch;
	uint64_t widest;
};

static bool reads_all(void *arg)
{
	struct wide_reader *r = arg;

	if (channel_promised(r->ch) > r->widest)
		r->widest = channel_promised(r->ch);
	return flows(&r->f);
}

/* And leave enough for one that reads: each small window would cost it a round trip. */
static void many_that_never_read_stay_within_the_memory(void **state)
{
	struct pair *pair = *state;
	struct wide_reader r = { .f.all = FLOOD / 8 };
	uint64_t bound;

	pair->settings.window_memory = 1 << 20;
	pair_begin(pair, PAIR_PIPES);
	for (int i = 0; i < PAIR_CONNS - 1; i++) {
		struct flow idle = { .all = FLOW_CHUNK };

		pair_connect(pair, i);
		idle.from = pair->conn[i].server;
		flow_push(&idle);
	}
	bound = pair->settings.window_memory + PAIR_CONNS * WINDOW_LEAST;
	assert_true(pair->lp->ext->promised + pair->lp->in.queued <= bound);
	assert_true(pair->lp->ext->promised > bound / 2);
	pair_connect(pair, PAIR_CONNS - 1);
	r.f.from = pair->conn[PAIR_CONNS - 1].server;
	r.f.to = pair->conn[PAIR_CONNS - 1].client;
	r.ch = pair->lp->ext->channel[PAIR_CONNS];
	assert_true(run_until(pair->engine.loop, "one that reads beside them",
			      reads_all, &r));
	assert_true(r.widest > 8 * WINDOW_LEAST);
	assert_true(pair->lp->ext->promised + pair->lp->in.queued <= bound);
}

static struct channel *only_channel(struct pair *pair)
{
	return list_first(&pair->lp->conns, struct conn, member)->channel;
}

static bool is_twice_as_wide(void *arg)
{
	return only_channel(arg)->window == 2 * WINDOW_FIRST;
}

/* Who sends doubles what is under way each round trip: the window is not met. */
static void a_window_is_doubled_long_before_it_is_full(void **state)
{
	struct pair *pair = *state;
	struct flow f = { .all = WINDOW_FIRST / 4 };

	pair_connect(pair, 0);
	f.from = pair->conn[0].server;
	f.to = pair->conn[0].client;
	only_channel(pair)->round_at += 60 * NS_PER_SEC;	/* never too late */
	assert_true(run_until(pair->engine.loop, "a quarter", flows, &f));
	assert_true(run_until(pair->engine.loop, "a wider window",
			      is_twice_as_wide, pair));
	assert_true(channel_promised(only_channel(pair)) > WINDOW_FIRST);
}

static uint64_t promised_to(struct pair *pair, int i)
{
	return channel_promised(pair->lp->ext->channel[i + 1]);
}

/* The first connection took so much within a round trip that its window was doubled twice. */
static void reach_four_windows(struct pair *pair)
{
	struct channel *ch = only_channel(pair);
	struct flow f = { .all = WINDOW_FIRST / 2 };

	f.from = pair->conn[0].server;
	f.to = pair->conn[0].client;
	ch->window = 2 * WINDOW_FIRST;
	ch->round_at += 60 * NS_PER_SEC;
	assert_true(run_until(pair->engine.loop, "a quarter", flows, &f));
	while (ch->window == 2 * WINDOW_FIRST)
		run_round(pair->engine.loop);
	assert_int_equal(ch->window, 4 * WINDOW_FIRST);
}

/* Its pipes have grown: the next one's first bytes would meet a window for new ones. */
static void who_comes_later_begins_with_half_of_what_was_reached(void **state)
{
	struct pair *pair = *state;

	pair_connect(pair, 0);
	assert_int_equal(promised_to(pair, 0), WINDOW_FIRST);
	reach_four_windows(pair);
	pair_connect(pair, 1);
	assert_int_equal(promised_to(pair, 1), 2 * WINDOW_FIRST);
	/* RP was told so, and no connection of its own reached anything. */
	assert_int_equal(credit_left(&pair->rp->ext->channel[2]->out), 2 * WINDOW_FIRST);
	assert_int_equal(channel_promised(pair->rp->ext->channel[2]), WINDOW_FIRST);
}

static void where_an_eighth_of_the_memory_is_out_with_no_more_than_the_first(void **state)
{
	struct pair *pair = *state;

	pair_connect(pair, 0);
	reach_four_windows(pair);
	pair->settings.window_memory = 8 * (pair->lp->ext->promised +
					    pair->lp->ext->idle + pair->lp->in.queued);
	pair_connect(pair, 1);
	assert_int_equal(promised_to(pair, 1), WINDOW_FIRST);
}

static bool is_apart(void *arg)
{
	struct pair *pair = arg;

	return !only_channel(pair)->in_use;
}

/* What it was granted is out, but its application has left nothing. */
static void who_took_all_is_not_reset(void **state)
{
	struct pair *pair = *state;
	struct flow f = { .all = 1 << 20 };

	pair->settings.window_memory = 256 << 10;
	pair_begin(pair, PAIR_PIPES);
	pair_connect(pair, 0);
	f.from = pair->conn[0].server;
	f.to = pair->conn[0].client;
	assert_true(run_until(pair->engine.loop, "all of it", flows, &f));
	assert_int_equal(pair->lp->ext->idle, 0);
	only_channel(pair)->taken_at -= WINDOW_IDLE_SECONDS * NS_PER_SEC;
	assert_true(run_until(pair->engine.loop, "a look", is_apart, pair));
	assert_int_equal(pair->lp->ext->promised, 0);
	assert_true(pair->lp->ext->idle > 0);
	assert_int_equal(pair->lp->counts.queue_limit, 0);
	/* It goes on as before. */
	f.all *= 2;
	assert_true(run_until(pair->engine.loop, "more", flows, &f));
	assert_int_equal(pair->lp->ext->idle, 0);
}

static void who_is_refused_is_granted_nothing(void **state)
{
	struct pair *pair = *state;
	struct flow f = { .all = FLOOD };
	uint64_t granted;

	pair_connect(pair, 0);
	f.from = pair->conn[0].server;
	while (!conn_queued(list_first(&pair->lp->conns, struct conn, member))) {
		flow_push(&f);
		run_round(pair->engine.loop);
	}
	granted = only_channel(pair)->in.granted;
	conn_reset(only_channel(pair)->conn, CONN_END_LIMIT);
	assert_int_equal(only_channel(pair)->in.granted, granted);
}

/* --- over on the pipes, and not read --- */

enum { UNREAD = 200 << 10 };

static struct conn *only_conn(struct pair *pair)
{
	return list_first(&pair->lp->conns, struct conn, member);
}

static bool has_ended(void *arg)
{
	return only_conn(arg)->ended;
}

/* A server has sent UNREAD bytes and both ends have ended; its client reads nothing. */
static void leave_unread(struct pair *pair)
{
	struct flow f = { .all = UNREAD };
	int small = 16 << 10;

	pair->settings.window_memory = 1 << 20;
	pair_begin(pair, PAIR_PIPES);
	pair_connect(pair, 0);
	setsockopt(pair->conn[0].client, SOL_SOCKET, SO_RCVBUF, &small,
		   sizeof(small));
	setsockopt(only_conn(pair)->watch.fd, SOL_SOCKET, SO_SNDBUF, &small,
		   sizeof(small));
	f.from = pair->conn[0].server;
	while (f.sent < f.all)
		flow_push(&f);
	shutdown(pair->conn[0].server, SHUT_WR);
	shutdown(pair->conn[0].client, SHUT_WR);
	assert_true(run_until(pair->engine.loop, "its end on the pipes",
			      has_ended, pair));
	assert_true(conn_queued(only_conn(pair)) > UNREAD / 2);
}

/* As if nothing had been taken for long: its socket may still take a little. */
static bool is_gone_at_last(void *arg)
{
	struct pair *pair = arg;
	struct backlog *backlog;

	if (!pair->lp->nconns)
		return true;
	backlog = only_conn(pair)->backlog;
	if (backlog)
		backlog->taken_at = loop_now(pair->engine.loop) -
				    WINDOW_IDLE_SECONDS * NS_PER_SEC;
	return false;
}

static void who_is_over_and_not_read_gives_its_memory_back(void **state)
{
	struct pair *pair = *state;

	leave_unread(pair);
	pair->settings.window_memory = UNREAD / 2;
	assert_true(run_until(pair->engine.loop, "its reset", is_gone_at_last,
			      pair));
	assert_int_equal(pair->lp->in.queued, 0);
	assert_int_equal(pair->lp->counts.queue_limit, 1);
}

static bool looked(void *arg)
{
	struct pair *pair = arg;

	return pair->lp->ext->window_timer.at >
	       loop_now(pair->engine.loop) + NS_PER_SEC / 2;
}

static void look_again(struct pair *pair)
{
	struct timer *t = &pair->lp->ext->window_timer;

	loop_timer_in(pair->engine.loop, t, 0);
	assert_true(run_until(pair->engine.loop, "a look", looked, pair));
}

static void who_is_over_and_slow_is_waited_for(void **state)
{
	struct pair *pair = *state;
	static uint8_t buf[UNREAD];
	size_t got = 0;

	leave_unread(pair);
	pair->settings.window_memory = UNREAD / 2;
	only_conn(pair)->backlog->taken_at -= WINDOW_IDLE_SECONDS * NS_PER_SEC;
	while (got < UNREAD / 2) {
		long n = read_some(pair->conn[0].client, buf, sizeof(buf));

		got += n > 0 ? (size_t)n : 0;
		run_round(pair->engine.loop);
	}
	look_again(pair);
	assert_int_equal(pair->lp->nconns, 1);
	/* Where memory is left nobody is in the way. */
	pair->settings.window_memory = 1 << 20;
	only_conn(pair)->backlog->taken_at -= WINDOW_IDLE_SECONDS * NS_PER_SEC;
	look_again(pair);
	assert_int_equal(pair->lp->counts.queue_limit, 0);
	while (got < UNREAD) {
		long n = read_some(pair->conn[0].client, buf, sizeof(buf));

		got += n > 0 ? (size_t)n : 0;
		run_round(pair->engine.loop);
	}
}

static void early_data_stay_within_their_limits(void **state)
{
	struct pair *pair = *state;
	struct destination to = destination_ipv4((uint8_t[]){ 1, 2, 3, 4 },
						 PAIR_PORT);
	struct flow f = { .all = 1 << 20 };
	int fd[2];

	/* The answer cannot come, as RP's end does not get to read. */
	pair->lp->ext->pool.limit.conn = 20000;
	app_pair(fd);
	f.from = pair->conn[0].client = fd[0];
	assert_int_equal(session_open(pair->lp, fd[1], &to, NULL), 0);
	flow_push(&f);
	for (int i = 0; i < 3; i++) {
		struct conn *c = list_first(&pair->lp->conns, struct conn,
					    member);

		assert_true(c->tx_bytes <= 20000);
		if (pair->conn[0].answered)
			break;
		run_round(pair->engine.loop);
	}
	while (pair->conn[0].server < 0)
		run_round(pair->engine.loop);
	f.to = pair->conn[0].server;
	assert_true(run_until(pair->engine.loop, "all of it", flows, &f));
	assert_int_equal(pair->lp->ext->pool.limit.used, 0);
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)
#define PAIR_TEST_NEW(f) cmocka_unit_test_setup_teardown(f, pair_setup_new, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(a_stopped_reader_stops_itself_alone),
		PAIR_TEST(a_window_begins_with_two_round_trips_of_eight_new_pipes),
		PAIR_TEST_NEW(many_that_never_read_stay_within_the_memory),
		PAIR_TEST(a_window_is_doubled_long_before_it_is_full),
		PAIR_TEST(who_comes_later_begins_with_half_of_what_was_reached),
		PAIR_TEST(where_an_eighth_of_the_memory_is_out_with_no_more_than_the_first),
		PAIR_TEST_NEW(who_took_all_is_not_reset),
		PAIR_TEST(who_is_refused_is_granted_nothing),
		PAIR_TEST_NEW(who_is_over_and_not_read_gives_its_memory_back),
		PAIR_TEST_NEW(who_is_over_and_slow_is_waited_for),
		PAIR_TEST(early_data_stay_within_their_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
