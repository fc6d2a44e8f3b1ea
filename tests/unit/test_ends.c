/* SPDX-License-Identifier: MIT */
/*
 * The rules of the extension hold whatever happens to the pipes, and each rule
 * that is known to be wrong breaks. TM3_STEPS is how many steps the right rules
 * run, TM3_SEED where chance begins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ends.h"
#include "random.h"

/* A wrong rule has to be found within so many steps. */
enum { STEPS = 10000000, STEPS_TO_FIND = 5000000 };

static const char *const rules[] = {
	[RIGHT] = "right",
	[NUMBERS_FROM_0] = "numbers from 0 for each use",
	[SUCCESSOR] = "an OPEN of a live id is a successor",
	[COUNT_FOR_INDEX] = "a count of messages for an index",
	[WINDOW_PER_USE] = "window per use",
	[WINDOW_ONCE] = "WINDOW not sent again",
	[ACK_OF_ACK] = "ACK of ACK",
	[ACK_ONCE] = "an ACK lost with its pipe is not sent anew",
	[EARLY_UNTIL_RESET] = "early bytes count until their use is reset",
	[EARLY_OVER_WINDOW] = "early bytes are held against SYNACK's offset",
	[ANY_INCARNATION] = "an ACK of another incarnation is taken",
	[KERNELS_ACK] = "the kernel's acknowledgement frees what was sent",
	[COUNT_OF_BEFORE] = "what is sent again keeps its count",
	[TWIN_OF_A_DEAD_PIPE] = "a twin of a dead pipe stands for a message",
	[RESET_OVER_CHUNK] = "a reset drops what was cut and not sent",
	[BEHIND_NO_WELCOME] = "RP sends out of order at once",
};

static uint64_t steps_wanted(void)
{
	const char *given = getenv("TM3_STEPS");

	return given ? strtoull(given, NULL, 0) : STEPS;
}

static void the_rules_hold(void **state)
{
	struct ends_result got;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	got = ends_run(r.state, steps_wanted(), RIGHT);
	printf("%llu steps: %llu deaths, %llu messages sent again, "
	       "%llu copies, %llu spared, %llu from the end, %llu uses, "
	       "%llu messages due, %llu times at rest\n",
	       (unsigned long long)got.steps, (unsigned long long)got.deaths,
	       (unsigned long long)got.again, (unsigned long long)got.copies,
	       (unsigned long long)got.spared,
	       (unsigned long long)got.from_end,
	       (unsigned long long)got.uses, (unsigned long long)got.delivered,
	       (unsigned long long)got.rests);
	if (got.found)
		fail_msg("after %llu steps: %s", (unsigned long long)got.steps,
			 got.found);
	/* The model must not hold for want of anything that happens. */
	assert_true(got.deaths > got.steps / 200);
	assert_true(got.again > got.steps / 100);
	assert_true(got.copies > got.steps / 200);
	assert_true(got.spared > got.steps / 10000);
	assert_true(got.from_end > got.steps / 500);
	assert_true(got.uses > got.steps / 500);
	assert_true(got.delivered > got.steps / 50);
}

static void is_found(void **state)
{
	enum wrong_rule wrong = *(const enum wrong_rule *)*state;
	struct ends_result got;
	struct random r;

	random_begin(&r, rules[wrong]);
	got = ends_run(r.state, STEPS_TO_FIND, wrong);
	printf("%s in %llu steps\n", got.found ? got.found : "NOT FOUND",
	       (unsigned long long)got.steps);
	assert_non_null(got.found);
}

int main(void)
{
	enum wrong_rule wrong[WRONG_RULES];
	struct CMUnitTest tests[WRONG_RULES] = {
		cmocka_unit_test(the_rules_hold),
	};

	for (int i = RIGHT + 1; i < WRONG_RULES; i++) {
		wrong[i] = (enum wrong_rule)i;
		tests[i] = (struct CMUnitTest){
			.name = rules[i],
			.test_func = is_found,
			.initial_state = &wrong[i],
		};
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
