/* SPDX-License-Identifier: MIT */
/* Pipes come to a path and leave it while others are in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "mux/path/paths.h"
#include "mux/pipe/acks.h"
#include "mux/pipe/carrier.h"
#include "mux/pipe/pipe.h"
#include "mux/sched/thin.h"

enum { MIB = 1 << 20 };

struct scene {
	struct paths paths;
	struct settings settings;
	struct pipe pipe[3];
};

static void add(struct scene *s, int i)
{
	struct pipe *p = &s->pipe[i];

	*p = (struct pipe){ .index = (unsigned int)i, .settings = &s->settings };
	p->info.mss = 1000;
	paths_add(&s->paths, 0, p);
}

static void begin(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	s->settings.late = true;
	add(s, 0);
	add(s, 1);
}

/* @len bytes leave on @i, of which @out are not acknowledged yet. */
static void send_on(struct scene *s, int i, size_t len, size_t out)
{
	size_t before;

	paths_send(&s->paths, &s->pipe[i], len, 0, &before);
	s->pipe[i].tx_bytes += len;
	s->pipe[i].info.in_flight = out;
}

static void who_comes_late_is_behind_nobody(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	for (int n = 0; n < 100; n++)
		send_on(&s, n % 2, MIB, 0);
	assert_false(paths_are_spread(&s.paths, 1));
	add(&s, 2);
	send_on(&s, 2, 5000, 5000);
	assert_false(paths_are_spread(&s.paths, 2));
	/* It is once the others are far ahead of what it has under way. */
	for (int n = 0; n < 20; n++)
		send_on(&s, n % 2, MIB, 0);
	assert_true(paths_are_spread(&s.paths, 3));
}

/* Pipe 0 does not come on, and is waited for. */
static void begin_spread(struct scene *s)
{
	begin(s);
	send_on(s, 0, 5000, 5000);
	for (int n = 0; n < 60; n++)
		send_on(s, 1, MIB, 0);
	assert_true(paths_are_spread(&s->paths, 1));
}

static void whose_bytes_go_elsewhere_holds_nobody_up(void **state)
{
	struct scene s;

	(void)state;
	begin_spread(&s);
	s.pipe[0].relieved = true;
	assert_false(paths_are_spread(&s.paths, 2));
	s.pipe[0].relieved = false;
	assert_true(paths_are_spread(&s.paths, 3));
}

static void who_left_holds_nobody_up(void **state)
{
	struct scene s;

	(void)state;
	begin_spread(&s);
	assert_int_equal(path_held(s.paths.path), 5000);
	paths_remove(&s.paths, &s.pipe[0]);
	assert_false(paths_are_spread(&s.paths, 2));
	assert_int_equal(path_held(s.paths.path), 0);
	assert_int_equal(s.paths.npipes, 1);
	assert_ptr_equal(s.paths.pipes[0], &s.pipe[1]);
}

static void the_bytes_of_who_left_stay_delivered(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	send_on(&s, 0, 7000, 2000);
	paths_remove(&s.paths, &s.pipe[0]);
	assert_int_equal(s.paths.path[0].delivered_before, 5000);
	paths_remove(&s.paths, &s.pipe[0]);	/* it is not on it any more */
	assert_int_equal(s.paths.path[0].delivered_before, 5000);
	assert_int_equal(s.paths.npipes, 1);
}

/* More is outstanding than the pipe was given: what it was greeted with is. */
static void nobody_delivered_less_than_nothing(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	send_on(&s, 1, 7000, 2000);
	send_on(&s, 0, 100, 144);
	paths_remove(&s.paths, &s.pipe[0]);
	assert_int_equal(s.paths.path[0].delivered_before, 0);
	paths_remove(&s.paths, &s.pipe[1]);
	assert_int_equal(s.paths.path[0].delivered_before, 5000);
}

/* By how much round trips differ is asked of the pipes, while they rest. */
static double spread_of(struct scene *s, const double *least_ms)
{
	aggregate_init(&s->paths.path[0].aggregate, AGGREGATE_DELAY, 0, 0);
	for (int i = 0; i < 3; i++)
		s->pipe[i].info.rttmin_ms = least_ms[i];
	path_room(&s->paths.path[0], 0);
	return s->paths.path[0].aggregate.spread / NS_PER_MS;
}

static void round_trips_differ_by_what_handshakes_say(void **state)
{
	const double jitter[] = { 60, 67, 71 }, again[] = { 60, 1061, 62 };
	const double unseen[] = { 4294967.295, 60, 62 };
	struct scene s;

	(void)state;
	begin(&s);
	add(&s, 2);
	assert_float_equal(spread_of(&s, jitter), 6, 1e-4);
	s.pipe[1].info.retransmits = 1;
	assert_float_equal(spread_of(&s, again), 1, 1e-4);
	s.pipe[0].info.retransmits = 1;
	assert_float_equal(spread_of(&s, unseen), 2, 1e-4);
	s.pipe[2].info.retransmits = 1;
	assert_float_equal(spread_of(&s, jitter), 0, 1e-4);
}

static void a_successor_has_not_the_last_message(void **state)
{
	struct scene s;
	struct conn c = { .id = 1 };

	(void)state;
	begin(&s);
	thin_sent(&s.paths, &c, &s.pipe[0], 100);
	send_on(&s, 0, 100, 100);
	s.pipe[0].allowance = s.pipe[1].allowance = 10000;
	assert_ptr_equal(thin_pipe(&s.paths, &c, &s.pipe[1]), &s.pipe[0]);
	paths_remove(&s.paths, &s.pipe[0]);
	add(&s, 0);
	s.pipe[0].allowance = 10000;
	s.pipe[0].info.in_flight = 500;
	assert_ptr_equal(thin_pipe(&s.paths, &c, &s.pipe[1]), &s.pipe[1]);
}

static void the_last_message_is_there_although_more_is_outstanding(void **state)
{
	struct scene s;
	struct conn c = { .id = 1 };

	(void)state;
	begin(&s);
	thin_sent(&s.paths, &c, &s.pipe[0], 100);
	send_on(&s, 0, 100, 144);
	s.pipe[0].allowance = s.pipe[1].allowance = 10000;
	assert_ptr_equal(thin_pipe(&s.paths, &c, &s.pipe[1]), &s.pipe[0]);
}

/*
 * Acknowledgements that are delayed come after the next message: then something
 * is always in flight, and yet never much. It stays where the last one is.
 */
static void who_is_never_at_rest_stays_thin(void **state)
{
	struct scene s;
	struct conn c = { .id = 1 };

	(void)state;
	begin(&s);
	s.pipe[0].allowance = s.pipe[1].allowance = 10000;
	for (int i = 0; i < 100; i++) {
		thin_sent(&s.paths, &c, &s.pipe[0], 40);
		send_on(&s, 0, 40, i ? 80 : 40);
		assert_ptr_equal(thin_pipe(&s.paths, &c, &s.pipe[1]),
				 &s.pipe[0]);
	}
	assert_in_range(c.in_last_round, 80, 120);
	/* A segment and more is not thin, until all of it has arrived. */
	thin_sent(&s.paths, &c, &s.pipe[0], 1500);
	send_on(&s, 0, 1500, 80);
	assert_ptr_equal(thin_pipe(&s.paths, &c, &s.pipe[1]), &s.pipe[1]);
	thin_sent(&s.paths, &c, &s.pipe[0], 40);
	send_on(&s, 0, 40, 80);
	assert_ptr_equal(thin_pipe(&s.paths, &c, &s.pipe[1]), &s.pipe[1]);
}

/* --- by how much delays deviate --- */

static void look(struct pipe *p)
{
	(void)p;
}

static const struct carrier carrier = {
	.look = look, .look_at_queues = look, .allow = look,
};

/* A path of 40 ms. @state: of its limit. */
static struct path *begin_delays(struct scene *s, enum aggregate_state state)
{
	struct path *path = &s->paths.path[0];

	begin(s);
	for (int i = 0; i < 2; i++) {
		s->pipe[i].carrier = &carrier;
		s->pipe[i].info.rttmin_ms = 40;
	}
	aggregate_init(&path->aggregate, AGGREGATE_DELAY, 0, 0);
	path->aggregate.state = state;
	return path;
}

/* What left @left ms after the beginning took @took ms. */
static void is_acked(struct scene *s, const struct ack_asked *asked, int64_t left,
		     int64_t took)
{
	int64_t at = (left + took) * NS_PER_MS;
	struct ack_asked what = *asked;

	what.clean = true;
	what.sent_at = what.left_at = left * NS_PER_MS;
	paths_acked(&s->paths, &s->pipe[0], &what, at, at, false);
}

/* An object ends: what it sent last, of which much waited in sockets, is acknowledged bit by bit. */
static void a_delay_is_that_of_what_was_in_flight_when_it_began(void **state)
{
	const struct ack_asked few = { .held = 5000 };
	const struct ack_asked many = { .held = 90000 };
	const struct ack_asked waited = { .schedule = true, .held = 120000,
					  .in_flight = 90000 };
	struct scene s;
	const struct path *path = begin_delays(&s, AGGREGATE_BOUND);

	(void)state;
	is_acked(&s, &few, 1000, 40);
	is_acked(&s, &many, 1100, 100);
	for (int i = 0; i < 10; i++) {
		s.pipe[0].info.in_flight = 90000 - 9500 * (size_t)i;
		is_acked(&s, &waited, 1200 + i, 100);
	}
	assert_true(path->variation.deviation < 1e-6);
	/* The same was in flight, and it took longer. */
	is_acked(&s, &waited, 1300, 108);
	assert_float_equal(path->variation.deviation, 0.002, 1e-6);
}

/* First windows are a queue of their own, which is not there when as much is under way later. */
static void a_start_says_nothing_of_delays(void **state)
{
	const struct ack_asked many = { .held = 50000 };
	struct scene s;
	struct path *path = begin_delays(&s, AGGREGATE_FREE);

	(void)state;
	is_acked(&s, &many, 1000, 100);
	is_acked(&s, &many, 1001, 150);
	assert_true(path->variation.deviation == 0);
	path->aggregate.state = AGGREGATE_BOUND;
	path->steady_at = 1150 * NS_PER_MS;
	is_acked(&s, &many, 1140, 120);	/* left before */
	is_acked(&s, &many, 1160, 60);
	is_acked(&s, &many, 1161, 60);
	assert_true(path->variation.deviation < 1e-6);
	is_acked(&s, &many, 1162, 68);
	assert_float_equal(path->variation.deviation, 0.002, 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_comes_late_is_behind_nobody),
		cmocka_unit_test(whose_bytes_go_elsewhere_holds_nobody_up),
		cmocka_unit_test(who_left_holds_nobody_up),
		cmocka_unit_test(the_bytes_of_who_left_stay_delivered),
		cmocka_unit_test(nobody_delivered_less_than_nothing),
		cmocka_unit_test(round_trips_differ_by_what_handshakes_say),
		cmocka_unit_test(a_successor_has_not_the_last_message),
		cmocka_unit_test(the_last_message_is_there_although_more_is_outstanding),
		cmocka_unit_test(who_is_never_at_rest_stays_thin),
		cmocka_unit_test(a_delay_is_that_of_what_was_in_flight_when_it_began),
		cmocka_unit_test(a_start_says_nothing_of_delays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
