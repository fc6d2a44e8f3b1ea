/* SPDX-License-Identifier: MIT */
/*
 * How many descriptors are kept for pipes, and how many of these may wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "mux/settings/limits.h"
#include "rp/lobby.h"
#include "rp/reception.h"
#include "rp/reserve.h"

static void pipes_that_wait_leave_a_quarter(void **state)
{
	const unsigned int pipes[] = { 1, 2, 8, 32, PIPES_MAX };

	(void)state;
	for (unsigned int i = 0; i < sizeof(pipes) / sizeof(*pipes); i++) {
		/* Below, there is no room for one group beside another one. */
		for (unsigned long limit = 4 * pipes[i] + 8; limit < 40000;
		     limit++) {
			struct reserve r = reserve_of(limit, pipes[i]);

			assert_true(r.all <= limit / 2);
			assert_true(r.lobby >= pipes[i]);
			assert_true(r.reception >= 1);
			assert_true(r.lobby + r.reception < r.all);
			assert_true(r.all < 8 ||
				    r.all - r.lobby - r.reception >= r.all / 6);
		}
	}
}

static void a_session_of_many_pipes_fits_into_the_reception(void **state)
{
	struct reserve r = reserve_of(1024, 1);

	(void)state;
	assert_int_equal(r.all, 128);
	assert_int_equal(r.lobby, 32);
	assert_int_equal(r.reception, PIPES_MAX);
}

static void many_descriptors_are_not_kept_for_nothing(void **state)
{
	struct reserve r = reserve_of(RLIM_INFINITY, 1);

	(void)state;
	assert_int_equal(r.all, RESERVE_MAX);
	assert_true(r.reception >= RECEPTION_MAX);
	assert_int_equal(r.lobby, LOBBY_WAITING_MAX);
}

static void few_have_a_place_for_each(void **state)
{
	(void)state;
	for (unsigned long limit = 0; limit < 64; limit++) {
		struct reserve r = reserve_of(limit, PIPES_MAX);

		assert_true(r.all <= limit / 2);
		assert_int_equal(r.lobby, PIPES_MAX);
		assert_int_equal(r.reception, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipes_that_wait_leave_a_quarter),
		cmocka_unit_test(a_session_of_many_pipes_fits_into_the_reception),
		cmocka_unit_test(many_descriptors_are_not_kept_for_nothing),
		cmocka_unit_test(few_have_a_place_for_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
