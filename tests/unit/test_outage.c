/* SPDX-License-Identifier: MIT */
/*
 * A path of two that loses everything for a moment, in virtual time: what the law for what its pipes hold
 * together makes of it. TCP repairs what was lost slowly, after its timer: neither how late that
 * is nor how fast it goes is the path's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "miles.h"
#include "model.h"
#include "random.h"

#define OUTAGE (300 * MS)
#define LOOKED (2 * S)

static const struct model_params miles[] = {
	{ .rate = 7.04 * MBIT, .rtt = 50 * MS, .queue = 88000 },
	{ .rate = 9.185 * MBIT, .rtt = 70 * MS, .queue = 115000 },
};

/* What the law said of the path that was silent, once it was bound: the least. */
struct said {
	double limit, rate;
	uint64_t yields;
};

static void look_at(const struct aggregate *a, struct said *said)
{
	said->yields = a->yields;
	if (a->state != AGGREGATE_BOUND)
		return;
	if ((double)a->limit < said->limit)
		said->limit = (double)a->limit;
	if (a->rate < said->rate)
		said->rate = a->rate;
}

/* A bulk over both, and path @silent is so from @from on. */
static struct said outage(int silent, int64_t from)
{
	struct said said = { .limit = 1e9, .rate = 1e9 };
	struct model_params is = miles[0], far = miles[1];
	struct model_params *lost = silent ? &far : &is;
	struct random r = { .state = 1 };
	struct model model;

	is.pipes = 8;
	is.paths = 2;
	is.second = &far;
	is.policy = &sched_soonest;
	is.delayed_acks = true;
	lost->silent_from = S + from;
	lost->silent_to = lost->silent_from + OUTAGE;
	model_init(&model, &is, &r);
	model_offer(&model, 0, UINT64_MAX);
	for (int64_t at = 0; at < LOOKED; at += 10 * MS) {
		model_run(&model, 10 * MS);
		look_at(&model.paths.path[silent].aggregate, &said);
	}
	model_fini(&model);
	return said;
}

static double needs(const struct model_params *mile)
{
	return mile->rate * (double)mile->rtt / 1e9;
}

/*
 * Also where the law knows nothing yet, and would have its first measurement from it: a limit of 0.13 of what
 * the path needs, and 0.04 of its rate.
 */
static void an_outage_is_not_the_paths_rate(void **state)
{
	(void)state;
	for (int k = 0; k < 2 * 25; k++) {
		int silent = k % 2;
		struct said said = outage(silent, (k / 2 + 1) * 20 * MS);

		assert_int_equal(said.yields, 0);
		assert_true(said.limit > 0.7 * needs(&miles[silent]));
		assert_true(said.rate > 0.4 * miles[silent].rate);
	}
}

/* Its acknowledgements are as far apart as if it were, as long as the law knows only its round trip. */
static void who_is_slow_is_not_silent(void **state)
{
	static const double rates[] = { 0.1, 0.3, 1 };

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct model_params is = mile(rates[k], 30 * MS, 5000, 4);
		struct random r = { .state = 1 };
		struct model model;

		model_init(&model, &is, &r);
		model_offer(&model, 0, UINT64_MAX);
		model_run(&model, 60 * S);
		assert_int_equal(model.paths.path[0].aggregate.state,
				 AGGREGATE_BOUND);
		assert_true(model_queue(&model) < 2 * S);
		model_fini(&model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_outage_is_not_the_paths_rate),
		cmocka_unit_test(who_is_slow_is_not_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
