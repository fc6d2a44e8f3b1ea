/* SPDX-License-Identifier: MIT */
/* Who takes part in an experiment of another path, by how much, and what it learns: numbers alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "limited.h"
#include "miles.h"

static const int64_t at = 100 * S;

/* A limit that is in the way, on a path of 60 ms with a queue of 8. */
static void carry(struct aggregate *a)
{
	begin_bound(a, 60 * MS, at);
	a->mss = 1448;
	a->asked_at = at - 10 * MS;
	a->before = (struct aggregate_round){
		.held = LIMIT, .rtt = 68e6, .least = 68e6, .rate = 10 * MBIT,
		.limited = true,
	};
}

static void experiment(struct aggregate *first, enum aggregate_probe probe,
		       double part)
{
	carry(first);
	first->probe = probe;
	first->probe_part = part;
}

static void it_changes_by_the_same_part(void **state)
{
	struct aggregate a, first;

	(void)state;
	experiment(&first, PROBE_MORE, 1.15);
	carry(&a);
	assert_true(aggregate_joins(&a, &first, at));
	assert_int_equal(a.probe, PROBE_MORE);
	assert_in_range(a.limit, LIMIT * 1.149, LIMIT * 1.151);
	experiment(&first, PROBE_LESS, 0.8);
	carry(&a);
	assert_true(aggregate_joins(&a, &first, at));
	assert_int_equal(a.probe, PROBE_LESS);
	assert_in_range(a.limit, LIMIT * 0.799, LIMIT * 0.801);
	/* And back, when the round has ended. */
	hear_a_round(&a, at, LIMIT * 0.8, 61 * MS);
	assert_int_equal(a.probe, PROBE_NONE);
	assert_int_equal(a.limit, LIMIT);
}

/* What is right for a path of 1 ms would be a long queue here, or none of its own rate. */
static void nor_by_much_more_than_it_would_itself(void **state)
{
	struct aggregate a, first;

	(void)state;
	experiment(&first, PROBE_MORE, 1.9);
	carry(&a);
	assert_true(aggregate_joins(&a, &first, at));
	assert_in_range(a.limit, LIMIT * 1.2, LIMIT * 1.3);
	experiment(&first, PROBE_LESS, 0.04);
	carry(&a);
	assert_true(aggregate_joins(&a, &first, at));
	assert_in_range(a.limit, LIMIT * 0.6, LIMIT * 0.7);
}

/* A long queue that does not follow, for the third time: others', or nothing was told. */
static void what_its_own_noise_hides_tells_nothing(void **state)
{
	static const double noise[] = { 1e6, 20e6 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct aggregate a, first;

		experiment(&first, PROBE_MORE, 1.12);
		carry(&a);
		a.noise = noise[i];
		a.vain = 2;
		assert_true(aggregate_joins(&a, &first, at));
		a.before.rtt = a.before.least = 160e6;
		hear_a_round(&a, at, LIMIT * 1.12, 160 * MS);
		assert_int_equal(a.state, i ? AGGREGATE_BOUND : AGGREGATE_YIELD);
		assert_int_equal(a.vain, i ? 2 : 3);
	}
}

static void who_carries_little_takes_no_part(void **state)
{
	struct aggregate a, first;

	(void)state;
	experiment(&first, PROBE_MORE, 1.15);
	carry(&a);
	a.before.limited = false;
	assert_false(aggregate_joins(&a, &first, at));
	carry(&a);
	a.asked_at = at - S;
	assert_false(aggregate_joins(&a, &first, at));
	carry(&a);
	a.after_idle = true;
	assert_false(aggregate_joins(&a, &first, at));
	carry(&a);
	a.state = AGGREGATE_FREE;
	assert_false(aggregate_joins(&a, &first, at));
	carry(&a);
	a.state = AGGREGATE_YIELD;
	assert_false(aggregate_joins(&a, &first, at));
	first.probe = PROBE_LESS;
	assert_true(aggregate_joins(&a, &first, at));
	carry(&a);
	a.mode = AGGREGATE_OFF;
	assert_false(aggregate_joins(&a, &first, at));
}

/* It lasts as long as the others' rounds. */
static void it_does_not_end_before_the_others(void **state)
{
	struct aggregate a, first;

	(void)state;
	experiment(&first, PROBE_LESS, 0.8);
	carry(&a);
	assert_true(aggregate_joins(&a, &first, at));
	a.probe_until = at + 500 * MS;
	for (int i = 0; i < 1000 && a.probe; i++) {
		struct aggregate_ack ack = {
			.sent_at = at + i * MS, .left_at = at + i * MS,
			.acked_at = at + i * MS + 61 * MS,
			.counted_at = at + i * MS + 61 * MS,
			.delivered = (uint64_t)i * 1250, .held = LIMIT * 8 / 10,
			.least = 60 * MS, .mss = 1448, .more = true,
		};

		aggregate_acked(&a, &ack);
		if (ack.acked_at < a.probe_until)
			assert_int_equal(a.probe, PROBE_LESS);
	}
	assert_int_equal(a.probe, PROBE_NONE);
}

static void it_ends_where_nothing_is_carried(void **state)
{
	struct aggregate a, first;

	(void)state;
	experiment(&first, PROBE_LESS, 0.8);
	carry(&a);
	assert_true(aggregate_joins(&a, &first, at));
	aggregate_asks(&a, 5000, 0, at + S);
	assert_int_equal(a.probe, PROBE_NONE);
	assert_int_equal(a.limit, LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_changes_by_the_same_part),
		cmocka_unit_test(nor_by_much_more_than_it_would_itself),
		cmocka_unit_test(what_its_own_noise_hides_tells_nothing),
		cmocka_unit_test(who_carries_little_takes_no_part),
		cmocka_unit_test(it_does_not_end_before_the_others),
		cmocka_unit_test(it_ends_where_nothing_is_carried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
