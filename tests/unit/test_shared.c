/* SPDX-License-Identifier: MIT */
/*
 * Two paths that lead through one queue, as Wi-Fi and Ethernet behind one modem do: each has a limit of its own, and
 * takes what the other one sends for strangers'. What may be asked today is that the link is used, that neither path
 * starves, and that they do not stay so: both find the limit again. The queue meanwhile is in
 * docs/decisions/0022.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "miles.h"
#include "model.h"
#include "random.h"

enum { PIPES = 8, WARM_S = 20, LASTS_S = 60, TICK_MS = 10 };

struct found {
	double used, share;	/* of the link; of it by path 0 */
	double queue_ms;	/* in the mean */
	unsigned int bound[2];	/* ticks at which a path was not yielding */
};

static struct found run(double mbit, int rtt_ms, enum aggregate_mode mode)
{
	struct model_params is = mile(mbit, rtt_ms * MS, 500, PIPES);
	struct random r = { .state = 1 };
	struct found f = { 0 };
	struct model model;
	uint64_t before[2], sent[2];
	unsigned int n;

	is.paths = 2;
	is.mode = mode;
	model_init(&model, &is, &r);
	model_offer(&model, 0, UINT64_MAX);
	model_run(&model, WARM_S * S);
	model_forget(&model);
	for (int i = 0; i < 2; i++)
		before[i] = model.paths.path[i].written;
	for (n = 0; n < LASTS_S * 1000 / TICK_MS; n++) {
		model_run(&model, TICK_MS * MS);
		f.queue_ms += (double)model_queue(&model) / 1e6;
		for (int i = 0; i < 2; i++)
			f.bound[i] += model.paths.path[i].aggregate.state !=
				      AGGREGATE_YIELD;
	}
	for (int i = 0; i < 2; i++)
		sent[i] = model.paths.path[i].written - before[i];
	f.used = (double)model.arrived / is.rate / LASTS_S;
	f.share = (double)sent[0] / (double)(sent[0] + sent[1]);
	f.queue_ms /= n;
	print_message("%g Mbit/s, %d ms: %.3f used, %.2f by one of them, queue %.0f ms, yield %.0f and %.0f %%\n",
		      mbit, rtt_ms, f.used, f.share, f.queue_ms,
		      100 - 100.0 * f.bound[0] / n, 100 - 100.0 * f.bound[1] / n);
	model_fini(&model);
	return f;
}

static void two_paths_through_one_queue_share_it(void **state)
{
	static const struct { double mbit; int rtt_ms; } miles[] = {
		{ 2, 30 }, { 5, 100 }, { 10, 50 }, { 20, 200 }, { 50, 20 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(miles) / sizeof(*miles); i++) {
		struct found f = run(miles[i].mbit, miles[i].rtt_ms,
				     AGGREGATE_DELAY);
		struct found off = run(miles[i].mbit, miles[i].rtt_ms,
				       AGGREGATE_OFF);

		assert_true(f.used > 0.97);
		assert_true(f.share > 0.2 && f.share < 0.8);
		assert_true(f.bound[0] > 0 && f.bound[1] > 0);
		/* It is hardly worse than without a limit, where it is no better. */
		assert_true(f.queue_ms < 1.05 * off.queue_ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_paths_through_one_queue_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
