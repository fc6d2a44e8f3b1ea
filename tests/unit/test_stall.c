/* SPDX-License-Identifier: MIT */
/*
 * The account of a slow reader: fast ones never come to its end, slow ones do,
 * and a pause now and then is free.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/base/loop.h"
#include "mux/conn/stall.h"
#include "mux/settings/limits.h"

#define TICK (100 * NS_PER_MS)

/* So many seconds of one pause, at so many bytes a second; how long it lasts. */
static double lasts(double rate, double seconds)
{
	struct stall s = { 0 };
	int64_t now = NS_PER_SEC;
	double taken = 0;

	stall_begin(&s, now, 0);
	while (!stall_is_spent(&s) && now < seconds * NS_PER_SEC) {
		now += TICK;
		taken += rate * TICK / NS_PER_SEC;
		stall_charge(&s, now, (uint64_t)taken);
	}
	return (double)(now - NS_PER_SEC) / NS_PER_SEC;
}

static void who_takes_nothing_has_stall_ms(void **state)
{
	(void)state;
	assert_float_equal(lasts(0, 60), STALL_MS / 1e3, 0.11);
	assert_float_equal(lasts(50e3, 60), STALL_MS / 1e3, 0.15);
}

static void who_takes_half_as_much_as_is_asked_has_twice_as_long(void **state)
{
	(void)state;
	assert_float_equal(lasts(STALL_RATE / 2.0, 60), STALL_MS / 500.0, 0.2);
}

static void who_reads_fast_may_pause_without_end(void **state)
{
	(void)state;
	assert_float_equal(lasts(STALL_RATE * 1.01, 600), 599, 0.2);
}

/* Pauses of one second, with so long between them; how many there can be. */
static int pauses(int64_t between)
{
	struct stall s = { 0 };
	int64_t now = NS_PER_SEC;
	int n;

	for (n = 0; n < 1000; n++) {
		stall_begin(&s, now, 0);
		now += NS_PER_SEC;
		stall_charge(&s, now, 0);
		if (stall_is_spent(&s))
			break;
		now += between;
	}
	return n;
}

static void a_tenth_of_the_time_is_free(void **state)
{
	(void)state;
	assert_int_equal(pauses(0), STALL_MS / 1000 - 1);
	assert_in_range(pauses(2 * NS_PER_SEC), 5, 6);
	assert_int_equal(pauses(STALL_SHARE * NS_PER_SEC), 1000);
}

static void time_that_was_not_used_is_not_saved(void **state)
{
	struct stall s = { 0 };
	int64_t now = NS_PER_SEC;

	(void)state;
	stall_begin(&s, now, 0);
	stall_charge(&s, now + TICK, 1 << 30);
	now += 3600 * NS_PER_SEC;
	stall_begin(&s, now, 1 << 30);
	stall_charge(&s, now + STALL_MS * NS_PER_MS, 1 << 30);
	assert_true(stall_is_spent(&s));
}

static void what_held_up_nobody_costs_nothing(void **state)
{
	struct stall s = { 0 };

	(void)state;
	stall_begin(&s, NS_PER_SEC, 0);
	stall_excuse(&s, 3600 * NS_PER_SEC, 0);
	assert_false(stall_is_spent(&s));
	stall_charge(&s, 3601 * NS_PER_SEC, 0);
	assert_int_equal(s.spent, NS_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_takes_nothing_has_stall_ms),
		cmocka_unit_test(
			who_takes_half_as_much_as_is_asked_has_twice_as_long),
		cmocka_unit_test(who_reads_fast_may_pause_without_end),
		cmocka_unit_test(a_tenth_of_the_time_is_free),
		cmocka_unit_test(time_that_was_not_used_is_not_saved),
		cmocka_unit_test(what_held_up_nobody_costs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
