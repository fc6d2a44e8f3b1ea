/* SPDX-License-Identifier: MIT */
/* What each may take of the loop's time, by a clock that goes only when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/base/budget.h"
#include "mux/base/loop.h"
#include "halted.h"
#include "loopback.h"

#define ALL (BUDGET_ROUND_US * NS_PER_US)

static struct {
	struct loop *loop;
	struct budgets all;
	struct budget one, other;
} here;

static int set_up(void **state)
{
	(void)state;
	here.loop = loop_new();
	budgets_init(&here.all, here.loop);
	budget_init(&here.one, &here.all);
	clock_halt();
	run_round(here.loop);
	return here.loop ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	clock_go_on();
	budget_fini(&here.one);
	budget_fini(&here.other);
	loop_free(here.loop);
	return (int)here.all.n;
}

/* May it begin? Then it takes @ns. */
static bool takes(struct budget *b, int64_t ns)
{
	if (!budget_begin(b))
		return false;
	clock_pass(ns);
	budget_end(b);
	return true;
}

static void who_is_alone_takes_what_it_likes(void **state)
{
	(void)state;
	assert_true(budget_begin(&here.one));
	assert_false(budget_is_watched(&here.one));
	clock_pass(NS_PER_SEC);
	assert_int_equal(budget_used(&here.one), 0);
	assert_true(budget_goes_on(&here.one));
	budget_end(&here.one);
	assert_true(takes(&here.one, NS_PER_SEC));
}

/* The other one is there, and has nothing to do. */
static void a_round_has_an_end(void **state)
{
	(void)state;
	budget_init(&here.other, &here.all);
	assert_true(budget_begin(&here.one));
	assert_true(budget_is_watched(&here.one));
	clock_pass(ALL - 1);
	assert_int_equal(budget_used(&here.one), ALL - 1);
	assert_true(budget_goes_on(&here.one));
	clock_pass(1);
	assert_int_equal(budget_used(&here.one), 1);
	assert_false(budget_goes_on(&here.one));
	budget_end(&here.one);
	assert_false(budget_begin(&here.one));
	run_round(here.loop);
	assert_true(budget_begin(&here.one));
	budget_end(&here.one);
}

static void those_who_are_busy_share(void **state)
{
	(void)state;
	budget_init(&here.other, &here.all);
	assert_true(takes(&here.one, 1));
	assert_true(takes(&here.other, 1));
	run_round(here.loop);
	assert_true(takes(&here.one, ALL / 2));
	assert_false(budget_begin(&here.one));
	assert_true(takes(&here.other, ALL / 2));
	assert_false(budget_begin(&here.other));
	/* One of them has nothing more to do. */
	run_round(here.loop);
	run_round(here.loop);
	assert_true(takes(&here.one, ALL - 1));
	assert_true(budget_begin(&here.one));
	budget_end(&here.one);
}

/* However many there are. */
static void nobody_gets_less_than_the_least(void **state)
{
	enum { MANY = 4 * BUDGET_ROUND_US / BUDGET_LEAST_US };
	struct budget many[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++)
		budget_init(&many[i], &here.all);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++) {
			assert_true(takes(&many[i],
					  BUDGET_LEAST_US * NS_PER_US));
			assert_true(!round || !budget_begin(&many[i]));
		}
		run_round(here.loop);
	}
	for (int i = 0; i < MANY; i++)
		budget_fini(&many[i]);
}

static void what_was_too_much_is_owed(void **state)
{
	int rounds = 0;

	(void)state;
	budget_init(&here.other, &here.all);
	assert_true(takes(&here.one, 10 * ALL + 1));
	do {
		run_round(here.loop);
		rounds++;
		assert_true(takes(&here.other, 0));
	} while (!budget_begin(&here.one));
	budget_end(&here.one);
	/* A whole part in the first of these rounds, a half while both ask. */
	assert_in_range(rounds, 10, 20);
}

static void nothing_is_saved_up(void **state)
{
	(void)state;
	budget_init(&here.other, &here.all);
	for (int i = 0; i < 10; i++)
		run_round(here.loop);
	assert_true(takes(&here.one, ALL));
	assert_false(budget_begin(&here.one));
}

static void who_is_left_is_alone(void **state)
{
	(void)state;
	budget_init(&here.other, &here.all);
	assert_true(takes(&here.one, 2 * ALL));
	assert_false(budget_begin(&here.one));
	budget_fini(&here.other);
	budget_fini(&here.other);
	assert_true(takes(&here.one, NS_PER_SEC));
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(who_is_alone_takes_what_it_likes),
		test(a_round_has_an_end),
		test(those_who_are_busy_share),
		test(nobody_gets_less_than_the_least),
		test(what_was_too_much_is_owed),
		test(nothing_is_saved_up),
		test(who_is_left_is_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
