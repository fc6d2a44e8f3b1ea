/* SPDX-License-Identifier: MIT */
/*
 * The engine's decisions over a modelled last mile, in virtual time: what the
 * pipes hold together, who waits and for how long, and whether the path is
 * used. Scheduler, allowance and limit are the engine's; the loop that asks
 * them, a message at a time, is the model's and stands for mux/session/outbound.
 * That no message waits while a pipe could send, and that nothing is written beyond
 * the limit but the message that reaches it, the model asserts itself. Under
 * sanitizers a part (part.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bulk.h"
#include "miles.h"
#include "model.h"
#include "part.h"
#include "random.h"

enum { QUANTUM = 8192 };

/* --- the path --- */

/* What as many TCP connections can do, one after a slow start say, is enough. */
static double without_a_limit(const struct model_params *is, struct random *r)
{
	struct model_params off = *is;
	struct model model;
	double part;

	off.mode = AGGREGATE_OFF;
	bulk_from_the_start(&model, &off, r, 6 * S);
	model_run(&model, 4 * S);
	part = used(&model, 4 * S);
	model_fini(&model);
	return part;
}

/* A segment that a receiver keeps back from each pipe is much of a short path. */
static bool is_held_back(const struct model_params *is)
{
	return is->delayed_acks && is->rtt < 10 * MS && is->rate < 15 * MBIT;
}

/* What takes long is a packet: of a fast path, in which windows grow soon, as many are less time. */
static bool is_fast(const struct model_params *is)
{
	return is->rate > 50 * MBIT && is->rtt <= 10 * MS;
}

static void is_used_with_a_short_queue(const struct model_params *is,
				       struct random *r)
{
	double least = is_held_back(is) || is->pipes > 16 ? 0.85 : 0.95;
	int64_t lasts = is_fast(is) ? S : 4 * S;
	struct model model;

	bulk_from_the_start(&model, is, r, is_fast(is) ? 3 * S : 6 * S);
	model_run(&model, lasts);
	if (used(&model, lasts) <= least)
		assert_true(used(&model, lasts) >
			    least * without_a_limit(is, r));
	assert_true(model.network.longest < 5 * wish(is));
	assert_true(model.overshoot <= WIRE_PAYLOAD_MAX);
	assert_int_equal(model.network.dropped, 0);
	assert_int_equal(model.paths.path[0].aggregate.yields, 0);
	model_fini(&model);
}

static void any_path_is_used_with_a_short_queue(void **state)
{
	static const unsigned int pipes[] = { 1, 2, 4, 8, 16, 64 };
	static const double rates[] = { 5, 10, 20, 100, 1000 };
	static const int64_t rtts[] = { 1 * MS, 10 * MS, 50 * MS, 200 * MS };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int k = 0; k < 6 * 5 * 4; k += ONE_IN) {
		struct model_params is = mile(rates[k % 5], rtts[k / 5 % 4],
					     300, pipes[k / 20]);

		/* As many events as it takes must not take minutes. */
		if (is.rate > 500 * MBIT && is.rtt > 10 * MS)
			continue;
		is_used_with_a_short_queue(&is, &r);
		is.delayed_acks = true;
		if (is.rate < 500 * MBIT)
			is_used_with_a_short_queue(&is, &r);
	}
}

/* Without the limit the same pipes fill whatever queue there is. */
static void without_a_limit_the_queue_is_full(void **state)
{
	struct model_params is = mile(10, 50 * MS, 300, 8);
	struct model model;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	is.mode = AGGREGATE_OFF;
	bulk_from_the_start(&model, &is, &r, 6 * S);
	model_run(&model, 4 * S);
	assert_true(model.network.longest > 290 * MS);
	model_fini(&model);
}

static void loss_by_chance_is_not_made_worse(void **state)
{
	struct random r;
	double part[2];

	(void)state;
	random_begin(&r, __func__);
	for (int on = 0; on < 2; on++) {
		struct model_params is = mile(10, 50 * MS, 300, 8);
		struct model model;

		is.loss = 0.01;
		is.mode = on ? AGGREGATE_DELAY : AGGREGATE_OFF;
		bulk_from_the_start(&model, &is, &r, 6 * S);
		model_run(&model, 30 * S);
		part[on] = used(&model, 30 * S);
		model_fini(&model);
	}
	assert_true(part[1] > 0.9 * part[0]);
}

/* Ten times as much, and it is in use within a dozen round trips. */
static void a_rate_that_grows_is_found_soon(void **state)
{
	static const int64_t rtts[] = { 10 * MS, 50 * MS, 100 * MS };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int i = 0; i < 3; i++) {
		struct model_params is = mile(2, rtts[i], 1000, 8);
		struct model model;

		bulk_from_the_start(&model, &is, &r, 4 * S);
		model.is.rate = is.rate = 20 * MBIT;
		model_run(&model, 11 * rtts[i]);
		model_forget(&model);
		model_run(&model, 2 * S);
		assert_true(used(&model, 2 * S) > 0.9);
		model_fini(&model);
	}
}

static void a_rate_that_changes_is_followed(void **state)
{
	static const double rates[] = { 10, 2, 20, 5, 40 };
	struct model_params is = mile(10, 50 * MS, 1000, 8);
	struct model model;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	bulk_from_the_start(&model, &is, &r, 4 * S);
	for (int i = 0; i < 5; i++) {
		model.is.rate = is.rate = rates[i] * MBIT;
		model_run(&model, 8 * S);
		model_forget(&model);
		model_run(&model, 2 * S);
		assert_true(used(&model, 2 * S) > 0.9);
		assert_true(model.network.longest < 4 * wish(&is));
	}
	model_fini(&model);
}

/*
 * One that becomes longer looks like others' queue: it is known by waiting, not
 * at once, and until then there is no limit most of the time.
 */
static void a_round_trip_that_changes_is_followed(void **state)
{
	struct model_params is = mile(10, 50 * MS, 1000, 8);
	struct model model;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	bulk_from_the_start(&model, &is, &r, 4 * S);
	model.is.rtt = 120 * MS;
	model_run(&model, 50 * S);
	model_forget(&model);
	model_run(&model, 10 * S);
	assert_true(used(&model, 10 * S) > 0.9);
	model.is.rtt = 30 * MS;
	model_run(&model, 5 * S);
	model_forget(&model);
	model_run(&model, 4 * S);
	assert_true(used(&model, 4 * S) > 0.95);
	assert_true(model.network.longest < 4 * wish(&is));
	model_fini(&model);
}

/* The machine stands still for a moment, as a bulk begins, and later. */
static void a_moment_is_not_taken_for_others(void **state)
{
	static const unsigned int pipes[] = { 1, 4, 8 };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int k = 0; k < 3; k++) {
		struct model_params is = mile(10, 50 * MS, 500, pipes[k]);
		struct model model;

		model_init(&model, &is, &r);
		object_ms(&model);
		model_forget(&model);
		for (int i = 0; i < 8; i++) {
			model.network.busy_until = model.now + 100 * MS;
			if (!i)
				model_offer(&model, 1, UINT64_MAX);
			model_run(&model, 2 * S);
		}
		/* In the start it looks like a queue that was there, for half a second. */
		assert_true(model.paths.path[0].aggregate.yields <= 1);
		assert_int_equal(model.paths.path[0].aggregate.state,
				 AGGREGATE_BOUND);
		/* For a twentieth of the time nothing could pass. */
		assert_true(used(&model, 16 * S) > 0.85);
		model_fini(&model);
	}
}

/* --- connections --- */

static void an_object_beside_bulk_is_hardly_slower(void **state)
{
	static const double rates[] = { 5, 10, 20, 100 };
	static const unsigned int pipes[] = { 1, 2, 4, 8, 16 };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int k = 0; k < 4 * 5 * 2; k += ONE_IN) {
		struct model_params is = mile(rates[k % 4], 50 * MS, 500,
					     pipes[k / 4 % 5]);
		/* A round must not last longer than the objects' pace. */
		unsigned int bulks = k < 20 ? 1 : rates[k % 4] > 5 ? 40 : 20;
		unsigned int met = 0;
		struct model model;
		double idle;

		model_init(&model, &is, &r);
		idle = object_ms(&model);
		for (unsigned int i = 1; i <= bulks; i++)
			model_offer(&model, i, UINT64_MAX);
		model_run(&model, 4 * S);
		/* One may meet an experiment. */
		for (int i = 0; i < 16; i++) {
			double more = object_ms(&model) - idle;

			met += more >= 2.5 * (double)wish(&is) / 1e6;
			assert_true(more < 5 * (double)wish(&is) / 1e6);
		}
		assert_true(met <= 1);
		model_fini(&model);
	}
}

static void all_get_their_share_within_a_bounded_time(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (unsigned int n = 2; n <= MODEL_CONNS; n *= 2) {
		struct model_params is = mile(10, 50 * MS, 300, 8);
		int64_t round = (int64_t)(n * (QUANTUM + WIRE_PAYLOAD_MAX) /
					  is.rate * 1e9);
		struct model model;

		model_init(&model, &is, &r);
		for (unsigned int i = 0; i < n; i++)
			model_offer(&model, i, UINT64_MAX);
		/* The first 64 KB of each go ahead of what follows. */
		model_run(&model, 8 * S);
		model_forget(&model);
		model_run(&model, 10 * S);
		/* Two turns, and a message that overdraws each. */
		assert_true(model.unfair <= 2 * (QUANTUM + WIRE_PAYLOAD_MAX));
		for (unsigned int i = 0; i < n; i++)
			assert_true(model.conn[i].longest_wait < 2 * round);
		model_fini(&model);
	}
}

/* Connections that come and go by chance, over any path: none is forgotten. */
static void nobody_starves_whatever_comes(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int k = 0; k < 20; k += ONE_IN) {
		struct model_params is = mile(random_range(&r, 1, 50),
				random_range(&r, 1, 200) * MS,
				random_range(&r, 50, 500),
				random_range(&r, 1, 16));
		struct model model;

		is.delayed_acks = random_below(&r, 2);
		is.loss = random_below(&r, 3) ? 0 : 0.02;
		model_init(&model, &is, &r);
		for (int i = 0; i < 400; i++) {
			model_offer(&model, random_below(&r, MODEL_CONNS),
				   random_range(&r, 1, 60000));
			model_run(&model, random_range(&r, 1, 100) * MS);
		}
		model_run(&model, 300 * S);
		for (unsigned int i = 0; i < MODEL_CONNS; i++) {
			assert_int_equal(model.conn[i].backlog, 0);
			assert_int_equal(model.conn[i].arrived,
					 model.conn[i].sent);
		}
		model_fini(&model);
	}
}

/*
 * One answer of 4 KB after another, each on a connection of its own, for more than the path
 * takes; and an object of 20 KB, which alone is there in 70 ms.
 */
static void small_answers_let_an_object_through(void **state)
{
	struct model_params is = mile(10, 50 * MS, 100, 8);
	struct model model;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	model_init(&model, &is, &r);
	model_offer(&model, 1, UINT64_MAX);
	for (unsigned int ms = 0; ms < 5000; ms++) {
		unsigned int i = 2;

		while (i < MODEL_CONNS && model.conn[i].conn.ready)
			i++;
		if (ms % 3 == 0 && i < MODEL_CONNS) {
			model.conn[i].conn.served = 0;
			model_offer(&model, i, 4000);
		}
		if (ms == 3000)
			model_offer(&model, 0, 20000);
		model_run(&model, MS);
	}
	assert_true(model.conn[0].done_at > 0);
	model_fini(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_path_is_used_with_a_short_queue),
		cmocka_unit_test(without_a_limit_the_queue_is_full),
		cmocka_unit_test(loss_by_chance_is_not_made_worse),
		cmocka_unit_test(a_rate_that_grows_is_found_soon),
		cmocka_unit_test(a_rate_that_changes_is_followed),
		cmocka_unit_test(a_round_trip_that_changes_is_followed),
		cmocka_unit_test(a_moment_is_not_taken_for_others),
		cmocka_unit_test(an_object_beside_bulk_is_hardly_slower),
		cmocka_unit_test(all_get_their_share_within_a_bounded_time),
		cmocka_unit_test(nobody_starves_whatever_comes),
		cmocka_unit_test(small_answers_let_an_object_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
