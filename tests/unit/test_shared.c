/* SPDX-License-Identifier: MIT */
/*
 * Two paths that lead through one queue, as Wi-Fi and Ethernet behind one modem do: each has a limit of its own, and
 * takes what the other one sends for strangers'. What docs/decisions/0022 promises is that the link is used, that
 * neither path starves, and that they do not stay so: each asks again ten seconds after it asked last. The queue meanwhile
 * is told there. Two paths that share nothing are not to yield to each other. Both with jitter, late processes and
 * lost packets, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "miles.h"
#include "model.h"
#include "part.h"
#include "random.h"

enum { PIPES = 8, WARM_S = 20, LASTS_S = 60, TICK_MS = 10 };
enum { QUEUE_MS = 500, ASKS_AGAIN_S = 10 };	/* and two rounds, of which each meets the queue */

struct found {
	double used, share;	/* of the link; of it by path 0 */
	double queue_ms;	/* in the mean */
	unsigned int bound[2];	/* ticks at which a path was not yielding */
	double longest_s;	/* that either yielded without asking again */
};

static const struct { double mbit; int rtt_ms; } miles[] = {
	{ 2, 30 }, { 5, 100 }, { 10, 50 }, { 20, 200 }, { 50, 20 },
};
enum { MILES = sizeof(miles) / sizeof(*miles) };

static void make_noisy(struct model_params *is)
{
	is->jitter = is->rtt / 20;
	is->jitter_back = is->rtt / 20;
	is->late = 2 * MS;
	is->loss = 0.0005;
	is->delayed_acks = true;
}

/* @apart: the second path has a mile like the first one's to itself. */
static struct found run(double mbit, int rtt_ms, enum aggregate_mode mode,
			bool noisy, bool apart)
{
	struct model_params is = mile(mbit, rtt_ms * MS, QUEUE_MS, PIPES), second;
	struct random r = { .state = 1 };
	struct found f = { 0 };
	struct model model;
	uint64_t before[2], sent[2];
	unsigned int n, yields[2] = { 0 };

	is.paths = 2;
	is.mode = mode;
	if (noisy)
		make_noisy(&is);
	second = is;
	if (apart)
		is.second = &second;
	model_init(&model, &is, &r);
	model_offer(&model, 0, UINT64_MAX);
	model_run(&model, WARM_S * S);
	model_forget(&model);
	for (int i = 0; i < 2; i++)
		before[i] = model.paths.path[i].written;
	for (n = 0; n < LASTS_S * 1000 / TICK_MS; n++) {
		model_run(&model, TICK_MS * MS);
		f.queue_ms += (double)model_queue(&model) / 1e6;
		for (int i = 0; i < 2; i++) {
			const struct aggregate *a =
				&model.paths.path[i].aggregate;
			bool yield = a->state == AGGREGATE_YIELD;

			f.bound[i] += !yield;
			/* Who asks holds less for a round trip. */
			yields[i] = yield && a->probe == PROBE_NONE ?
				    yields[i] + 1 : 0;
			if (yields[i] * TICK_MS / 1e3 > f.longest_s)
				f.longest_s = yields[i] * TICK_MS / 1e3;
		}
	}
	for (int i = 0; i < 2; i++)
		sent[i] = model.paths.path[i].written - before[i];
	f.used = (double)model.arrived / is.rate / LASTS_S / (apart ? 2 : 1);
	f.share = (double)sent[0] / (double)(sent[0] + sent[1]);
	f.queue_ms /= n;
	print_message("%g Mbit/s, %d ms: %.3f used, %.2f by one of them, queue %.0f ms, yield %.0f and %.0f %%, %.2f s without asking\n",
		      mbit, rtt_ms, f.used, f.share, f.queue_ms,
		      100 - 100.0 * f.bound[0] / n, 100 - 100.0 * f.bound[1] / n, f.longest_s);
	model_fini(&model);
	return f;
}

static void share_one_queue(bool noisy)
{
	for (unsigned int i = 0; i < MILES; i += ONE_IN) {
		struct found f = run(miles[i].mbit, miles[i].rtt_ms,
				     AGGREGATE_DELAY, noisy, false);
		struct found off = run(miles[i].mbit, miles[i].rtt_ms,
				       AGGREGATE_OFF, noisy, false);

		assert_true(f.used > 0.97);
		assert_true(f.share > 0.2 && f.share < 0.8);
		assert_true(f.bound[0] > 0 && f.bound[1] > 0);
		assert_true(f.longest_s < ASKS_AGAIN_S +
			    2 * (QUEUE_MS + miles[i].rtt_ms) / 1e3);
		/* It is hardly worse than without a limit, where it is no better. */
		assert_true(f.queue_ms < 1.05 * off.queue_ms);
	}
}

static void two_paths_through_one_queue_share_it(void **state)
{
	(void)state;
	share_one_queue(false);
}

static void so_they_do_where_delays_vary_and_packets_are_lost(void **state)
{
	(void)state;
	share_one_queue(true);
}

static void two_paths_apart_are_no_strangers_to_each_other(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < MILES; i += ONE_IN) {
		bool noisy = i % 2;	/* every other one */
		struct found f = run(miles[i].mbit, miles[i].rtt_ms,
				     AGGREGATE_DELAY, noisy, true);
		struct found off = run(miles[i].mbit, miles[i].rtt_ms,
				       AGGREGATE_OFF, noisy, true);

		/* Losses tell a limit less of the path than a queue does. */
		assert_true(f.used > (noisy ? 0.9 : 0.98) * off.used);
		assert_true(f.share > 0.4 && f.share < 0.6);
		assert_true(f.queue_ms < 0.25 * off.queue_ms);
		assert_true(f.bound[0] + f.bound[1] >
			    0.9 * 2 * LASTS_S * 1000 / TICK_MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_paths_through_one_queue_share_it),
		cmocka_unit_test(so_they_do_where_delays_vary_and_packets_are_lost),
		cmocka_unit_test(two_paths_apart_are_no_strangers_to_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
