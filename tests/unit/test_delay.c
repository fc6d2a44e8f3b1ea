/* SPDX-License-Identifier: MIT */
/* The law for what the pipes hold together, fed with numbers alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "limited.h"
#include "miles.h"

/* Stamps of as long as @rtt for a second, of a path on which @least was seen. */
static void hear(struct aggregate *a, int64_t at, int64_t rtt, int64_t least)
{
	for (int i = 0; i < 1000; i++) {
		struct aggregate_ack ack = {
			.sent_at = at + i * MS, .left_at = at + i * MS,
			.acked_at = at + i * MS + rtt,
			.counted_at = at + i * MS + rtt,
			.delivered = (uint64_t)i * 1250, .held = LIMIT,
			.least = least, .mss = 1448, .more = true,
		};

		aggregate_acked(a, &ack);
	}
}

/*
 * Once the base fell to 3 ms on a path of 61, and base and rate were wrong until
 * the end. On a short path less is as wrong.
 */
static void what_cannot_be_does_not_enter(void **state)
{
	static const struct {
		int64_t base, rtt;
	} paths[] = {
		{ 61 * MS, 3 * MS }, { 61 * MS, 56 * MS }, { 61 * MS, 0 },
		{ 2 * MS, MS }, { 2 * MS, 17 * MS / 10 }, { 2 * MS, -MS },
		{ 300 * MS, 295 * MS },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int64_t at = 100 * S, base = paths[i].base;
		struct aggregate a;

		begin_bound(&a, base, at);
		hear(&a, at, paths[i].rtt, base);
		assert_int_equal(aggregate_base(&a), base);
		assert_int_equal(a.limit, LIMIT);
		assert_int_equal(a.rounds, 0);
		assert_int_equal(a.state, AGGREGATE_BOUND);
	}
}

/* Nor does it in the start, where a single message renews the base. */
static void what_cannot_be_does_not_begin(void **state)
{
	struct aggregate a;
	size_t first;

	(void)state;
	aggregate_init(&a, AGGREGATE_DELAY, 0, 0);
	first = a.limit;
	hear(&a, 100 * S, 3 * MS, 61 * MS);
	assert_int_equal(aggregate_base(&a), 0);
	assert_int_equal(a.limit, first);
	hear(&a, 102 * S, 61 * MS, 61 * MS);
	assert_int_equal(aggregate_base(&a), 61 * MS);
}

/* Clocks differ a little, and so may what the kernel saw. */
static void what_is_sooner_by_little_enters(void **state)
{
	static const struct {
		int64_t base, rtt;
	} paths[] = {
		{ 61 * MS, 58 * MS }, { 2 * MS, 18 * MS / 10 },
		{ 300 * MS, 297 * MS },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int64_t at = 100 * S, base = paths[i].base;
		struct aggregate a;

		begin_bound(&a, base, at);
		hear(&a, at, paths[i].rtt, base);
		assert_true(a.rounds > 0);
		assert_true(aggregate_base(&a) < base);
		assert_true(aggregate_base(&a) >= paths[i].rtt);
	}
}

/*
 * A start on a path of 100 ms: its first message met no queue, the others one of
 * @queue, for @ms. In between are single messages, as of objects beside a bulk.
 */
static void begin_start(struct aggregate *a, int64_t queue, int ms)
{
	aggregate_init(a, AGGREGATE_DELAY, 0, 0);
	for (int i = 0; i < ms; i++) {
		int64_t sent_at = S + i * MS, rtt = 100 * MS + (i ? queue : 0);
		struct aggregate_ack ack = {
			.sent_at = sent_at, .left_at = sent_at,
			.acked_at = sent_at + rtt, .counted_at = sent_at + rtt,
			.delivered = (uint64_t)i * 2500, .held = 2500 * 110,
			.least = 100 * MS, .mss = 1448, .more = i % 100 != 50,
		};

		aggregate_acked(a, &ack);
	}
}

/* Sockets that the kernel gives no more keep it from growing, and from going. */
static void a_short_queue_that_stays_ends_the_start(void **state)
{
	struct aggregate a;

	(void)state;
	begin_start(&a, 10 * MS, 900);
	assert_int_equal(a.state, AGGREGATE_FREE);
	begin_start(&a, 10 * MS, 1200);
	assert_int_equal(a.state, AGGREGATE_BOUND);
	assert_in_range(a.limit, 2500 * 100, 2500 * 106);
	/* As wide as is wished for. */
	begin_start(&a, 4 * MS, 5000);
	assert_int_equal(a.state, AGGREGATE_FREE);
}

static void a_long_queue_ends_the_start_at_once(void **state)
{
	struct aggregate a;

	(void)state;
	begin_start(&a, 20 * MS, 40);
	assert_int_equal(a.state, AGGREGATE_BOUND);
}

/* More is held on trial, as others are suspected for the third time. */
static void begin_trial(struct aggregate *a, int64_t at)
{
	begin_bound(a, 60 * MS, at);
	a->rate = 5 * MBIT;
	a->before = (struct aggregate_round){
		.held = LIMIT, .rtt = 80e6, .least = 80e6, .rate = 5 * MBIT,
		.limited = true,
	};
	a->probe = PROBE_MORE;
	a->probe_from = LIMIT;
	a->probe_tells = true;
	a->vain = 2;
}

/*
 * Less is held as a download pauses, and the queue falls as well: that does not say that
 * the path is ours and has become slower.
 */
static void a_pause_in_a_trial_tells_nothing(void **state)
{
	int64_t at = 100 * S;
	struct aggregate a;

	(void)state;
	begin_trial(&a, at);
	aggregate_unlimited(&a, at);
	hear_a_round(&a, at + MS, LIMIT * 8 / 10, 64 * MS);
	assert_int_equal(a.probe, PROBE_NONE);
	assert_int_equal(a.state, AGGREGATE_BOUND);
	assert_int_equal(a.vain, 2);
	assert_int_equal(a.best, 10 * MBIT);
	assert_int_equal(a.limit, LIMIT);
}

/* The limit was in the way, but no more was held: nor does this say that others are there. */
static void a_trial_that_holds_no_more_tells_nothing(void **state)
{
	static const size_t held[] = { LIMIT, LIMIT * 9 / 10 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		int64_t at = 100 * S;
		struct aggregate a;

		begin_trial(&a, at);
		hear_a_round(&a, at, held[i], 80 * MS);
		assert_int_equal(a.probe, PROBE_NONE);
		assert_int_equal(a.state, AGGREGATE_BOUND);
		assert_int_equal(a.vain, 2);
		assert_int_equal(a.best, 10 * MBIT);
		assert_int_equal(a.limit, LIMIT);
	}
}

/* What a trial is for: more is held, and the round trip follows or does not. */
static void a_trial_tells_whose_the_queue_is(void **state)
{
	int64_t at = 100 * S;
	struct aggregate a;

	(void)state;
	begin_trial(&a, at);
	hear_a_round(&a, at, LIMIT * 11 / 10, 80 * MS);
	assert_int_equal(a.state, AGGREGATE_YIELD);
	begin_trial(&a, at);
	hear_a_round(&a, at, LIMIT * 11 / 10, 88 * MS);
	assert_int_equal(a.state, AGGREGATE_BOUND);
	assert_int_equal(a.vain, 0);
	assert_true(a.best < 10 * MBIT);
}

/*
 * Three rounds without a queue, if not as short as to be empty, and we are alone: one
 * experiment is not enough to give way again.
 */
static void without_a_queue_we_are_alone(void **state)
{
	int64_t at = 100 * S;
	struct aggregate a;

	(void)state;
	begin_bound(&a, 60 * MS, at);
	a.state = AGGREGATE_YIELD;
	a.limit = AGGREGATE_NONE;
	a.vain = 3;
	a.yield_for = 8e9;
	a.yield_until = at + 8 * S;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(a.state, AGGREGATE_YIELD);
		hear_a_round(&a, at + i * S, LIMIT, 63 * MS);
	}
	assert_int_equal(a.state, AGGREGATE_BOUND);
	assert_int_equal(a.vain, 0);
	assert_true(a.yield_for <= 0);
}

/*
 * A base that is a little too long costs one experiment: one after the other, each of
 * which held less than the one before, left half of the rate for a second and more.
 */
static void a_base_a_little_too_long_costs_one_experiment(void **state)
{
	int64_t at = 100 * S;
	struct aggregate a;

	(void)state;
	begin_bound(&a, 76 * MS, at - 11 * S);
	a.round_at = at;
	hear_a_round(&a, at, LIMIT, 80 * MS);
	assert_int_equal(a.probe, PROBE_LESS);
	assert_true(a.limit < LIMIT);
	hear_a_round(&a, at + S, a.limit, 72 * MS);
	assert_int_equal(a.probe, PROBE_NONE);
	assert_int_equal(a.limit, LIMIT);
	assert_in_range(aggregate_base(&a), 72 * MS, 74 * MS);
	hear_a_round(&a, at + 2 * S, LIMIT, 76 * MS);
	assert_int_equal(a.probe, PROBE_NONE);
}

/* Of a base that is much too long a queue may be left: it is asked again at once. */
static void a_base_much_too_long_is_asked_for_again(void **state)
{
	int64_t at = 100 * S;
	struct aggregate a;

	(void)state;
	begin_bound(&a, 120 * MS, at - 11 * S);
	a.round_at = at;
	hear_a_round(&a, at, LIMIT, 124 * MS);
	assert_int_equal(a.probe, PROBE_LESS);
	hear_a_round(&a, at + S, a.limit, 93 * MS);
	assert_int_equal(aggregate_base(&a), 93 * MS);
	hear_a_round(&a, at + 2 * S, a.limit, 97 * MS);
	assert_int_equal(a.probe, PROBE_LESS);
}

/* --- rests --- */

/* A message without a queue: when it was sent, and when acknowledged. */
static void told(struct aggregate *a, int64_t sent_at, int64_t acked_at)
{
	aggregate_acked(a, &(struct aggregate_ack){
		.sent_at = sent_at, .left_at = sent_at,
		.acked_at = acked_at, .counted_at = acked_at,
		.held = 1448, .least = acked_at - sent_at, .mss = 1448,
	});
}

/* Each meets an empty path. That of the second comes when the third has gone. */
static void a_stamp_from_before_a_rest_does_not_end_it(void **state)
{
	enum { TRIP = 60 * MS, FIRST_AT_ONCE = 40 * 1448 };
	const int64_t begun = 100 * S, second = begun + 100 * MS, third = begun + 300 * MS;
	struct aggregate a;
	size_t limit;

	(void)state;
	aggregate_init(&a, AGGREGATE_DELAY, 0, begun);
	aggregate_expect(&a, TRIP, TRIP);
	assert_true(aggregate_asks(&a, 1448, 0, begun));
	told(&a, begun, begun + TRIP);
	limit = a.limit;
	aggregate_asks(&a, 2 * 1448, 0, second);
	aggregate_asks(&a, 3 * 1448, 0, third);
	told(&a, second, second + TRIP);
	assert_int_equal(a.limit, limit);
	assert_int_equal(aggregate_room(&a, 0, third), FIRST_AT_ONCE);
	told(&a, third, third + TRIP);
	assert_false(a.after_idle);
	assert_true(a.limit <= limit);
}

/* Where the rate is known the burst is as long as one connection's. */
static void nor_does_it_let_all_of_the_limit_go_at_once(void **state)
{
	enum { TRIP = 60 * MS, AT_ONCE = 10 * 1448 };
	const int64_t before = 100 * S, rest = before + 200 * MS;
	struct aggregate a;

	(void)state;
	begin_bound(&a, TRIP, before);
	a.asked_at = before;
	aggregate_asks(&a, 1448, 0, rest);
	told(&a, before, before + TRIP);
	assert_int_equal(aggregate_room(&a, 0, rest), AT_ONCE);
	told(&a, rest, rest + TRIP);
	assert_int_equal(aggregate_room(&a, 0, rest + TRIP), LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_does_not_enter),
		cmocka_unit_test(what_cannot_be_does_not_begin),
		cmocka_unit_test(what_is_sooner_by_little_enters),
		cmocka_unit_test(a_short_queue_that_stays_ends_the_start),
		cmocka_unit_test(a_long_queue_ends_the_start_at_once),
		cmocka_unit_test(a_base_a_little_too_long_costs_one_experiment),
		cmocka_unit_test(a_base_much_too_long_is_asked_for_again),
		cmocka_unit_test(a_pause_in_a_trial_tells_nothing),
		cmocka_unit_test(a_trial_that_holds_no_more_tells_nothing),
		cmocka_unit_test(a_trial_tells_whose_the_queue_is),
		cmocka_unit_test(without_a_queue_we_are_alone),
		cmocka_unit_test(a_stamp_from_before_a_rest_does_not_end_it),
		cmocka_unit_test(nor_does_it_let_all_of_the_limit_go_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
