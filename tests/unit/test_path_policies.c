/* SPDX-License-Identifier: MIT */
/*
 * The policies of paths, by the engine's own decision: what each does with the next bytes, and
 * when objects are complete. With arguments this program plays one object and says how it went;
 * tests/unit/test_path_oracle.py compares that with what experiments/oracle computes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/path/forecast.h"
#include "path_play.h"

enum { NEAR, FAR, FARTHEST };

#define MBIT (1e6 / 8)

/* 200 KB/s 5 ms, 500 KB/s 10 ms, and all a hundred times as much, so that messages are small. */
static const struct play_mile slow[] = { { 200e3, 0.005 }, { 500e3, 0.010 } };
static const struct play_mile fast[] = { { 20e6, 0.005 }, { 50e6, 0.010 } };
static const struct play_mile wifi_lte[] = {
	{ 7.04 * MBIT, 0.025 }, { 9.185 * MBIT, 0.135 },
};

static unsigned int number_of(struct play *play, const struct next *next)
{
	assert_int_equal(next->act, NEXT_SEND);
	return paths_number(&play->paths, next->pipe);
}

/* Are so many bytes enough for the far path to help the near one? @cwnd: of that, or 0. */
static bool far_helps(const struct path_policy *policy,
		      const struct play_mile *miles, uint64_t left,
		      uint32_t cwnd)
{
	struct play play;
	struct next next;

	play_init(&play, policy, miles, 2);
	play_shut(&play, NEAR);
	if (cwnd) {
		play.lane[NEAR].pipe.info.cwnd = cwnd;
		play.lane[NEAR].pipe.info.mss = PLAY_MESSAGE;
	}
	play_object(&play, 0, left, true);
	next = play_next(&play);
	if (next.act == NEXT_SEND)
		assert_int_equal(number_of(&play, &next), FAR);
	else
		assert_true(next.until <= play.now + 5 * NS_PER_MS);
	return next.act == NEXT_SEND;
}

/* The least number of bytes for which it does. */
static double threshold(const struct path_policy *policy,
			const struct play_mile *miles, uint32_t cwnd)
{
	uint64_t no = 0, yes = 1 << 30;

	assert_true(far_helps(policy, miles, yes, cwnd));
	while (yes - no > 1) {
		uint64_t middle = (no + yes) / 2;

		if (far_helps(policy, miles, middle, cwnd))
			yes = middle;
		else
			no = middle;
	}
	return (double)yes;
}

/* What the near path carries while the far one sends a message. */
static double a_message(const struct play_mile *miles)
{
	return PLAY_MESSAGE * miles[NEAR].rate / miles[FAR].rate + 1;
}

static void the_rule_has_the_thresholds_of_one_way_delays(void **state)
{
	static const struct { double far_s, bytes; } known[] = {
		{ 0.035, 8800 }, { 0.135, 96800 }, { 0.235, 184800 },
	};

	(void)state;
	assert_near(threshold(&path_ecf, fast, 0), 100e3, a_message(fast));
	for (unsigned int i = 0; i < 3; i++) {
		struct play_mile miles[] = { wifi_lte[NEAR], wifi_lte[FAR] };

		miles[FAR].delay = known[i].far_s;
		assert_near(threshold(&path_ecf, miles, 0), known[i].bytes,
			    a_message(miles));
		assert_near(threshold(&path_dems_b, miles, 0), known[i].bytes,
			    a_message(miles));
		assert_near(threshold(&path_dems_s, miles, 0), known[i].bytes,
			    a_message(miles));
		/* With round trips for delays it is twice as much. */
		assert_near(threshold(&path_txdelay, miles, 0),
			    2 * known[i].bytes, a_message(miles));
	}
}

/* By as much as messages of the near path cannot leave, though its rate would allow it. */
static void a_fresh_window_lowers_the_threshold(void **state)
{
	double bytes = threshold(&path_ecf, wifi_lte, 10);

	(void)state;
	/* 14,600 in the first round trip, 29,200 in the second, then 10 ms at full rate. */
	assert_near(bytes, 52600, a_message(wifi_lte));
}

/* What it sends in so many @seconds. */
static void give(struct play *play, unsigned int lane, double seconds)
{
	struct path *path = &play->paths.path[lane];

	path->given = seconds * play->lane[lane].mile.rate;
	path->given_at = play->now;
}

static void what_a_path_holds_goes_before(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play_shut(&play, NEAR);
	play_object(&play, 0, 120000, true);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
	/* 2 ms at its rate are 40,000 bytes of the near path. */
	play.lane[FAR].pipe.info.in_flight = 100000;
	give(&play, FAR, 0.002);
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
	/* As much on the near path as well. */
	play.lane[NEAR].pipe.info.in_flight = 40000;
	give(&play, NEAR, 0.002);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
	/* It was acknowledged: the count was wrong. */
	play.lane[NEAR].pipe.info.in_flight = 0;
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
}

static void who_waits_is_not_held_up_by_the_limit_of_the_far_path(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play_shut(&play, NEAR);
	play_object(&play, 0, 50000, true);
	play.paths.path[FAR].aggregate.limited_to = 0;
	next = play_next(&play);
	assert_int_equal(next.act, NEXT_WAIT);
	assert_int_equal(next.wait, WAIT_FOR_LIMIT);
	assert_int_equal(next.until, play.now + 5 * NS_PER_MS);
	assert_int_equal(play.paths.path[FAR].aggregate.limited_to, play.now);
	assert_int_equal(play.paths.path[FAR].aggregate.waits, 0);
	assert_int_equal(play.paths.path[NEAR].aggregate.waits, 1);
}

static void what_has_no_end_uses_every_path(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play_shut(&play, NEAR);
	play_object(&play, 0, 1000, false);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
}

/* Without an end what its socket holds is what it has, unless that is full. */
static void what_waits_in_a_socket_remains(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play_shut(&play, NEAR);
	play_object(&play, 0, 50000, true);
	play.conn[0].ends = false;
	play.outlook[0].brim = 60000;
	assert_int_equal(conn_left(&play.conn[0]), 50000);
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
	play.outlook[0].brim = 50000;
	assert_int_equal(conn_left(&play.conn[0]), UINT64_MAX);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
	/* More was sent than there was when it was measured. */
	play.conn[0].tx_bytes = 50001;
	assert_int_equal(conn_left(&play.conn[0]), 0);
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
}

/* The small one waits for the near path meanwhile. */
static void the_far_path_takes_what_is_large(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play_shut(&play, NEAR);
	play_object(&play, 0, 1000, true);
	play_object(&play, 1, 1 << 20, false);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
	assert_ptr_equal(next.conn, &play.conn[1]);
	play.paths.path[NEAR].aggregate.limit = 1 << 20;
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), NEAR);
	assert_ptr_equal(next.conn, &play.conn[0]);
}

/* They take turns: as much of each goes before the last byte of one. */
static void others_that_send_are_ahead(void **state)
{
	struct play play;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play_shut(&play, NEAR);
	play_object(&play, 0, 60000, true);
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
	play_object(&play, 1, 60000, true);
	assert_int_equal(play_next(&play).act, NEXT_SEND);
}

/* One that does not work is no path that bytes could wait for. */
static void nobody_waits_for_a_path_that_is_gone(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play_shut(&play, NEAR);
	play_object(&play, 0, 1000, true);
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
	play.lane[NEAR].pipe.doubtful = true;
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
	play.lane[NEAR].pipe.doubtful = false;
	play.paths.path[NEAR].off = true;
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
}

/* --- objects --- */

static void an_object_is_complete_when_the_optimum_is(void **state)
{
	struct play play;
	double took;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play_object(&play, 0, 1000000, true);
	took = play_run(&play);
	assert_near(took, 0.022857, PLAY_MESSAGE / 20e6);
	/* The far path stops a delay before that: both end together. */
	assert_near((double)play.lane[FAR].free_at / 1e9, 1.012857 -
		    2 * PLAY_MESSAGE / 50e6, 4 * PLAY_MESSAGE / 50e6);
	assert_int_equal(play.lane[NEAR].bytes + play.lane[FAR].bytes, 1000000);
	/* Of ten thousand bytes a message is a good part. */
	play_init(&play, &path_ecf, slow, 2);
	play_object(&play, 0, 10000, true);
	assert_near(play_run(&play), 0.022857, PLAY_MESSAGE / 200e3);
}

static void the_usual_policy_pays_for_the_far_path(void **state)
{
	static const struct { unsigned int bytes; double minrtt, ecf; } known[] = {
		/* Of windows in packets: experiments/oracle/README.md */
		{ 64 << 10, 1.52, 1.00 }, { 256 << 10, 1.49, 1.00 },
		{ 512 << 10, 1.18, 1.00 }, { 1 << 20, 1.08, 1.00 },
	};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		double bytes = known[i].bytes, both = 16.225 * MBIT;
		double alone = 0.025 + bytes / wifi_lte[NEAR].rate;
		double fluid = (bytes + 7.04 * MBIT * 0.025 +
				9.185 * MBIT * 0.135) / both;
		struct play play;

		if (alone < fluid || alone < 0.135)
			fluid = alone;
		play_init(&play, &path_minrtt, wifi_lte, 2);
		play_object(&play, 0, known[i].bytes, true);
		assert_near(play_run(&play) / fluid, known[i].minrtt - 0.03, 0.06);
		play_init(&play, &path_ecf, wifi_lte, 2);
		play_object(&play, 0, known[i].bytes, true);
		assert_near(play_run(&play) / fluid, known[i].ecf - 0.001, 0.02);
	}
}

/* --- the other policies --- */

static void the_nearest_is_filled_first(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	play_init(&play, &path_minrtt, fast, 2);
	play_object(&play, 0, 1 << 20, false);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), NEAR);
	assert_true(next.bytes > PLAY_MESSAGE);
	play_shut(&play, NEAR);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
	/* As they are now, with their queues. */
	play.paths.path[NEAR].aggregate.limit = 1 << 20;
	play.lane[NEAR].pipe.info.rtt_ms = 30;
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
}

static void by_turns_the_nearest_begins(void **state)
{
	static const struct play_mile miles[] = {
		{ 1e6, 0.030 }, { 1e6, 0.010 }, { 1e6, 0.020 },
	};
	static const unsigned int turns[] = { 1, 2, 0, 1, 2, 0 };
	struct play play;
	struct next next;

	(void)state;
	play_init(&play, &path_rr, miles, 3);
	play_object(&play, 0, 1 << 20, false);
	for (unsigned int i = 0; i < 6; i++) {
		next = play_next(&play);
		assert_int_equal(number_of(&play, &next), turns[i]);
		assert_int_equal(next.bytes, PLAY_MESSAGE);
		play_send(&play, &next);
	}
	/* One that takes nothing misses its turn. */
	play_shut(&play, 1);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), 2);
	play_send(&play, &next);
	play.paths.path[1].aggregate.limit = 1 << 20;
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), 0);
}

static void one_carries_all_while_it_works(void **state)
{
	struct play play;
	struct next next;
	struct view view;

	(void)state;
	play_init(&play, &path_one, fast, 2);
	sched_set_paths(&play.s, &path_one, FAR, 0);
	play_object(&play, 0, 1 << 20, false);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), FAR);
	play_shut(&play, FAR);
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
	view = (struct view){ .sched = &play.s, .paths = &play.paths,
			      .now = play.now, .tail = true };
	next = sched_next(&view);
	assert_int_not_equal(next.act, NEXT_TAIL);
	play.lane[FAR].pipe.relieved = true;
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), NEAR);
	/* A path that this session has not got. */
	sched_set_paths(&play.s, &path_one, 5, 0);
	next = play_next(&play);
	assert_int_equal(number_of(&play, &next), NEAR);
}

/* Each part on its own: what the far path has carried when the near one is through. */
static void a_split_has_its_parts(void **state)
{
	static const double parts[] = { 0, 0.25, 0.5, 0.975, 1 };

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		double part = parts[i / 2], near, far, wanted;
		bool known = i % 2;
		struct play play;
		double took;

		play_init(&play, &path_split, fast, 2);
		sched_set_paths(&play.s, &path_split, 0, part);
		play_object(&play, 0, 1000000, known);
		took = play_run(&play);
		near = (double)play.lane[NEAR].bytes;
		assert_in_range((uint64_t)fabs(near - part * 1e6), 0, PLAY_MESSAGE);
		if (!known)
			continue;
		/* Neither waits for the other. */
		near = part > 0 ? 0.005 + part * 1e6 / 20e6 : 0;
		far = part < 1 ? 0.010 + (1 - part) * 1e6 / 50e6 : 0;
		wanted = near > far ? near : far;
		assert_near(took, wanted - PLAY_MESSAGE / 20e6,
			    2 * PLAY_MESSAGE / 20e6);
	}
}

static void a_split_is_none_where_one_path_works(void **state)
{
	struct play play;

	(void)state;
	for (unsigned int gone = NEAR; gone <= FAR; gone++) {
		play_init(&play, &path_split, fast, 2);
		sched_set_paths(&play.s, &path_split, 0, 0.5);
		play.paths.path[gone].off = true;
		play.lane[gone].pipe.standby = true;
		play_object(&play, 0, 100000, true);
		play_run(&play);
		assert_int_equal(play.lane[!gone].bytes, 100000);
	}
}

/* Nothing is asked, and runs are as long as ever. */
static void over_one_path_no_policy_matters(void **state)
{
	(void)state;
	for (unsigned int i = 0; path_policies[i]; i++) {
		struct play play;
		struct next next;

		play_init(&play, path_policies[i], fast, 1);
		sched_set_paths(&play.s, path_policies[i], 3, 0);
		play_object(&play, 0, 1000000, true);
		next = play_next(&play);
		assert_int_equal(number_of(&play, &next), NEAR);
		assert_true(next.bytes >= 2 * PLAY_MESSAGE);
		assert_near(play_run(&play), 0.055, PLAY_MESSAGE / 20e6);
		assert_int_equal(play.paths.path[0].given_at, 0);
	}
}

/* Not more is left than there was, and the end is reached with each. */
static void every_policy_carries_all_over_three_paths(void **state)
{
	static const struct play_mile miles[] = {
		{ 1e6, 0.030 }, { 2e6, 0.010 }, { 500e3, 0.100 },
	};

	(void)state;
	for (unsigned int i = 0; path_policies[i]; i++) {
		struct play play;
		uint64_t sum = 0;

		play_init(&play, path_policies[i], miles, 3);
		sched_set_paths(&play.s, path_policies[i], 1, 0.3);
		play_object(&play, 0, 300000, true);
		play_object(&play, 1, 70000, false);
		play_object(&play, 2, 1, true);
		play_run(&play);
		for (unsigned int lane = 0; lane < 3; lane++)
			sum += play.lane[lane].bytes;
		assert_int_equal(sum, 370001);
	}
}

static void they_have_names(void **state)
{
	(void)state;
	assert_string_equal(path_policies[0]->name, "soonest");
	for (unsigned int i = 0; path_policies[i]; i++)
		assert_ptr_equal(path_policy_named(path_policies[i]->name),
				 path_policies[i]);
	assert_null(path_policy_named("least"));
	assert_null(path_policy_named(""));
}

/* --- forecasts --- */

static void a_forecast_is_the_same_both_ways(void **state)
{
	struct forecast f = {
		.delay = 0.02, .trip = 0.04, .rate = 1e6, .full = 40e3,
		.window = 10e3, .behind = 3e3,
	};

	(void)state;
	for (double bytes = 500; bytes < 200e3; bytes += 500) {
		double at = forecast_arrival(&f, bytes);

		assert_near(forecast_arrived(&f, at), bytes - 1e-3, 2e-3);
	}
	/* 10,000 in the first round trip, 20,000 in the second, then at full rate. */
	assert_near(forecast_arrival(&f, 37e3), 0.02 + 0.08 + 0.01 - 1e-9, 2e-9);
	/* Where no rate is known windows double on. */
	f.rate = f.full = 0;
	assert_near(forecast_arrival(&f, 67e3), 0.02 + 0.08 - 1e-9, 2e-9);
	assert_near(forecast_arrived(&f, 0.02 + 0.09), 67e3 - 1e-3, 2e-3);
	f.window = 0;
	assert_near(forecast_arrival(&f, 1e9), 0.02, 1e-9);
}

/*
 * POLICY SIZE RATE DELAY RATE DELAY [...]: seconds, each path's bytes, and those that went twice. Of
 * dems-f:MS so many milliseconds are what delays deviate.
 */
static int play_one(int argc, char **argv)
{
	char name[16];
	const char *colon = strchr(argv[1], ':');
	const struct path_policy *policy;
	struct play_mile miles[PLAY_PATHS];
	struct play play;
	int n = (argc - 3) / 2;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(argv[1], ":"), argv[1]);
	policy = path_policy_named(name);
	if (!policy || n < 1 || n > PLAY_PATHS || argc != 3 + 2 * n)
		return 2;
	play_read_miles(miles, (unsigned int)n, argv + 3);
	play_init(&play, policy, miles, (unsigned int)n);
	sched_set_paths(&play.s, policy, colon ? (unsigned int)atoi(colon + 1) : 0,
			colon ? atof(colon + 1) / 100 : 0);
	if (colon && policy == &path_dems_f)
		play_deviate(&play, atof(colon + 1) / 1e3);
	play_object(&play, 0, strtoull(argv[2], NULL, 10), true);
	printf("%.9f", play_run(&play));
	for (int i = 0; i < n; i++)
		printf(" %llu", (unsigned long long)play.lane[i].bytes);
	printf(" %llu\n", (unsigned long long)play.again);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rule_has_the_thresholds_of_one_way_delays),
		cmocka_unit_test(a_fresh_window_lowers_the_threshold),
		cmocka_unit_test(what_a_path_holds_goes_before),
		cmocka_unit_test(who_waits_is_not_held_up_by_the_limit_of_the_far_path),
		cmocka_unit_test(what_has_no_end_uses_every_path),
		cmocka_unit_test(what_waits_in_a_socket_remains),
		cmocka_unit_test(the_far_path_takes_what_is_large),
		cmocka_unit_test(others_that_send_are_ahead),
		cmocka_unit_test(nobody_waits_for_a_path_that_is_gone),
		cmocka_unit_test(an_object_is_complete_when_the_optimum_is),
		cmocka_unit_test(the_usual_policy_pays_for_the_far_path),
		cmocka_unit_test(the_nearest_is_filled_first),
		cmocka_unit_test(by_turns_the_nearest_begins),
		cmocka_unit_test(one_carries_all_while_it_works),
		cmocka_unit_test(a_split_has_its_parts),
		cmocka_unit_test(a_split_is_none_where_one_path_works),
		cmocka_unit_test(over_one_path_no_policy_matters),
		cmocka_unit_test(every_policy_carries_all_over_three_paths),
		cmocka_unit_test(they_have_names),
		cmocka_unit_test(a_forecast_is_the_same_both_ways),
	};

	if (argc > 1)
		return play_one(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
