/* SPDX-License-Identifier: MIT */
/*
 * Two paths that lead through one queue, as Wi-Fi and Ethernet behind one modem do: each has a limit of its own, and
 * what the other one sends would be strangers' to it, if they did not hold less or more at the same time. So the queue
 * stays short, docs/decisions/0022 tells how short, whether or not their round trips are alike. Two paths that share
 * nothing are not to suffer from that. All with jitter, late processes and lost packets, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "miles.h"
#include "model.h"
#include "part.h"
#include "random.h"

enum { PIPES = 8, WARM_S = 20, LASTS_S = 40, TICK_MS = 10 };
enum { QUEUE_MS = 500, ASKS_AGAIN_S = 10 };	/* and two rounds, of which each meets the queue */

struct setting {
	bool noisy;
	bool apart;	/* the second path has a queue like the first one's to itself */
	double farther;	/* round trips of the second, to those of the first */
};

struct found {
	double used, share;	/* of the link; of it by path 0 */
	double queue_ms;	/* in the mean */
	double yields;		/* part of the time, of both paths */
	double longest_s;	/* that either yielded without asking again */
};

static const struct { double mbit; int rtt_ms; } miles[] = {
	{ 2, 30 }, { 5, 100 }, { 10, 50 }, { 20, 200 }, { 50, 20 },
};
enum { MILES = sizeof(miles) / sizeof(*miles) };

/* A path that is a little longer is another run: one alone may be luck. */
static const double longer[] = { 0.92, 1, 1.08 };
enum { LONGER = sizeof(longer) / sizeof(*longer) };

static void make_noisy(struct model_params *is)
{
	is->jitter = is->rtt / 20;
	is->jitter_back = is->rtt / 20;
	is->late = 2 * MS;
	is->loss = 0.0005;
	is->delayed_acks = true;
}

static void look(const struct model *model, struct found *f,
		 unsigned int yields[2])
{
	f->queue_ms += (double)model_queue(model) / 1e6;
	for (int i = 0; i < 2; i++) {
		const struct aggregate *a = &model->paths.path[i].aggregate;
		bool yield = a->state == AGGREGATE_YIELD;

		f->yields += yield / 2.0;
		/* Who asks holds less for a round trip. */
		yields[i] = yield && a->probe == PROBE_NONE ? yields[i] + 1 : 0;
		if (yields[i] * TICK_MS / 1e3 > f->longest_s)
			f->longest_s = yields[i] * TICK_MS / 1e3;
	}
}

static struct found run(const struct model_params *is)
{
	struct random r = { .state = 1 };
	struct found f = { 0 };
	struct model model;
	uint64_t before[2], sent[2];
	unsigned int n, yields[2] = { 0 };

	model_init(&model, is, &r);
	model_offer(&model, 0, UINT64_MAX);
	model_run(&model, WARM_S * S);
	model_forget(&model);
	for (int i = 0; i < 2; i++)
		before[i] = model.paths.path[i].written;
	for (n = 0; n < LASTS_S * 1000 / TICK_MS; n++) {
		model_run(&model, TICK_MS * MS);
		look(&model, &f, yields);
	}
	for (int i = 0; i < 2; i++)
		sent[i] = model.paths.path[i].written - before[i];
	f.used = (double)model.arrived / is->rate / LASTS_S /
		(is->one_queue ? 1 : 2);
	f.share = (double)sent[0] / (double)(sent[0] + sent[1]);
	f.queue_ms /= n;
	f.yields /= n;
	model_fini(&model);
	return f;
}

static struct found over(unsigned int mile_number, double by,
			 enum aggregate_mode mode, const struct setting *set)
{
	double mbit = miles[mile_number].mbit;
	double rtt = by * miles[mile_number].rtt_ms * MS;
	struct model_params is = mile(mbit, (int64_t)rtt, QUEUE_MS, PIPES);
	struct model_params second;
	struct found f;

	is.paths = 2;
	is.mode = mode;
	if (set->noisy)
		make_noisy(&is);
	second = is;
	second.rtt = (int64_t)(rtt * set->farther);
	is.second = &second;
	is.one_queue = !set->apart;
	f = run(&is);
	print_message("%g Mbit/s, %.0f and %.0f ms%s: %.3f used, %.2f by the first, queue %.0f ms, yield %.0f %%, %.2f s without asking\n",
		      mbit, rtt / MS, rtt / MS * set->farther, mode == AGGREGATE_OFF ? ", off" : "",
		      f.used, f.share, f.queue_ms, 100 * f.yields, f.longest_s);
	return f;
}

/* @most: the queue of all miles, to that without a limit. */
static void share_one_queue(const struct setting *set, double most)
{
	double queue = 0, yields = 0;
	unsigned int n = 0;

	for (unsigned int i = 0; i < MILES; i += ONE_IN) {
		struct found off = over(i, 1, AGGREGATE_OFF, set);

		for (unsigned int k = 0; k < LONGER; k++, n++) {
			struct found f = over(i, longer[k], AGGREGATE_DELAY,
					      set);

			assert_true(f.used > 0.9);
			assert_true(f.share > 0.05 && f.share < 0.95);
			assert_true(f.longest_s < ASKS_AGAIN_S + 2 * (QUEUE_MS +
				    miles[i].rtt_ms * set->farther) / 1e3);
			queue += f.queue_ms / off.queue_ms;
			yields += f.yields;
		}
	}
	print_message("queue %.2f of that without a limit, yield %.0f %%\n",
		      queue / n, 100 * yields / n);
	assert_true(queue / n < most);
	assert_true(yields / n < 0.3);
}

static void two_paths_through_one_queue_keep_it_short(void **state)
{
	(void)state;
	share_one_queue(&(struct setting){ .farther = 1 }, 0.25);
}

static void so_they_do_where_delays_vary_and_packets_are_lost(void **state)
{
	(void)state;
	share_one_queue(&(struct setting){ .noisy = true, .farther = 1 }, 0.3);
}

static void so_they_do_where_one_is_farther_away(void **state)
{
	(void)state;
	share_one_queue(&(struct setting){ .farther = 1.4 }, 0.25);
	share_one_queue(&(struct setting){ .noisy = true, .farther = 3 }, 0.45);
}

static void two_paths_apart_are_no_strangers_to_each_other(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < MILES; i += ONE_IN) {
		struct setting set = { .noisy = i % 2, .apart = true,
				       .farther = 1 };
		struct found f = over(i, 1, AGGREGATE_DELAY, &set);
		struct found off = over(i, 1, AGGREGATE_OFF, &set);

		/* Losses tell a limit less of the path than a queue does. */
		assert_true(f.used > (set.noisy ? 0.9 : 0.98) * off.used);
		assert_true(f.share > 0.4 && f.share < 0.6);
		assert_true(f.queue_ms < 0.25 * off.queue_ms);
		assert_true(f.yields < 0.1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_paths_through_one_queue_keep_it_short),
		cmocka_unit_test(so_they_do_where_delays_vary_and_packets_are_lost),
		cmocka_unit_test(so_they_do_where_one_is_farther_away),
		cmocka_unit_test(two_paths_apart_are_no_strangers_to_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
