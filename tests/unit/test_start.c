/* SPDX-License-Identifier: MIT */
/*
 * The first round trips of a transfer over a modelled last mile: the limit on
 * what the pipes hold together must neither slow them nor let windows that open
 * overflow a queue.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "miles.h"
#include "model.h"
#include "random.h"

struct start {
	int64_t took;
	uint64_t dropped;
};

static struct start fresh_download(const struct model_params *is,
				   uint64_t bytes, struct random *r)
{
	struct start found;
	struct model model;
	int64_t at;

	model_init(&model, is, r);
	at = model.now;
	model_offer(&model, 0, bytes);
	model_run(&model, 30 * S);
	assert_true(model.conn[0].done_at > at);
	found.took = model.conn[0].done_at - at;
	found.dropped = model.network.dropped;
	model_fini(&model);
	return found;
}

/* Beside the same without a limit, over queues that lose nothing either way. */
static void a_start_is_not_slowed(void **state)
{
	static const unsigned int pipes[] = { 1, 4, 8, 16 };
	static const uint64_t sizes[] = { 50000, 300000, 2000000 };
	static const struct {
		double mbit;
		int64_t rtt;
	} miles[] = { { 9.185, 70 * MS }, { 10, 50 * MS }, { 2.286, 70 * MS },
		      { 40, 30 * MS } };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int k = 0; k < 4 * 3 * 4; k++) {
		struct model_params is = mile(miles[k % 4].mbit,
					     miles[k % 4].rtt, 5000,
					     pipes[k / 12]);
		struct start off, on;

		is.delayed_acks = true;
		on = fresh_download(&is, sizes[k / 4 % 3], &r);
		is.mode = AGGREGATE_OFF;
		off = fresh_download(&is, sizes[k / 4 % 3], &r);
		/* The first flight is paced: where it is short that is seen. */
		assert_true(on.took <= off.took + off.took / 50 + is.rtt / 3);
		assert_int_equal(on.dropped, 0);
	}
}

/* First windows of many pipes are much for a short queue. */
static void a_start_loses_little(void **state)
{
	static const unsigned int pipes[] = { 4, 8, 16, 64 };
	static const double rates[] = { 7, 10, 20 };
	static const double queues[] = { 50, 70, 100 };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int k = 0; k < 4 * 3 * 3; k++) {
		struct model_params is = mile(rates[k % 3], 50 * MS,
					     queues[k / 3 % 3], pipes[k / 9]);
		struct start off, on;

		is.delayed_acks = true;
		on = fresh_download(&is, 2000000, &r);
		is.mode = AGGREGATE_OFF;
		off = fresh_download(&is, 2000000, &r);
		assert_true(on.dropped <= off.dropped / 2);
		assert_true(on.dropped <= 50);
		assert_true(on.took <= off.took + off.took / 50);
	}
}

/*
 * A few small objects tell a rate far below the path's. What follows must not
 * be let fill the queue on their account.
 */
static void a_bulk_behind_objects_loses_little(void **state)
{
	static const unsigned int pipes[] = { 1, 2, 4, 8 };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int k = 0; k < 4 * 2; k++) {
		struct model_params is = mile(k % 2 ? 20 : 10, 50 * MS, 100,
					     pipes[k / 2]);
		struct model model;

		is.delayed_acks = true;
		model_init(&model, &is, &r);
		for (int i = 0; i < 6; i++) {
			model_offer(&model, 1, OBJECT);
			model_run(&model, 160 * MS);
		}
		model_run(&model, 300 * MS);
		model_offer(&model, 0, 2000000);
		model_run(&model, 5 * S);
		assert_int_equal(model.network.dropped, 0);
		model_fini(&model);
	}
}

static int64_t bulk_behind_a_page(const struct model_params *is,
				  struct random *r)
{
	struct model model;
	int64_t at, took;

	model_init(&model, is, r);
	for (int i = 0; i < 8; i++) {
		model_offer(&model, 1, random_range(r, 2000, 20000));
		model_run(&model, random_range(r, 30, 150) * MS);
	}
	at = model.now;
	model_offer(&model, 0, 1000000);
	model_run(&model, 20 * S);
	assert_true(model.conn[0].done_at > at);
	took = model.conn[0].done_at - at;
	model_fini(&model);
	return took;
}

/*
 * A page's first objects come in bursts with pauses. What arrives over those is
 * not the path's rate, and what follows must not be held to it.
 */
static void a_page_does_not_hide_the_rate(void **state)
{
	static const struct {
		double mbit;
		int64_t rtt;
	} miles[] = { { 9.185, 74 * MS }, { 10, 54 * MS }, { 20, 54 * MS },
		      { 30, 74 * MS } };
	double on = 0, off = 0;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int k = 0; k < 4 * 40; k++) {
		struct model_params is = mile(miles[k % 4].mbit,
					     miles[k % 4].rtt, 500, 8);
		double without;

		is.delayed_acks = true;
		is.mode = AGGREGATE_OFF;
		without = (double)bulk_behind_a_page(&is, &r);
		is.mode = AGGREGATE_DELAY;
		on += (double)bulk_behind_a_page(&is, &r) / without;
		off += 1;
	}
	print_message("%g times as long as without a limit\n", on / off);
	assert_true(on / off < 1.04);
}

/*
 * On a fast path a burst tells a rate far above what the limit lets out. Who
 * fills the limit must have asked for a report, or nothing ends the wait.
 */
static void who_waits_for_room_is_told_of_it(void **state)
{
	struct aggregate a;
	unsigned int asked = 0;
	uint64_t written = 0;
	size_t held = 0;

	(void)state;
	aggregate_init(&a, AGGREGATE_DELAY, 0, S);
	a.after_idle = false;
	a.limit = 900000;
	a.rate = 10000 * MBIT;
	a.asked_at = S;
	while (aggregate_room(&a, held, S)) {
		asked += aggregate_asks(&a, written, held, S);
		held += WIRE_MESSAGE_MAX;
		written += WIRE_MESSAGE_MAX;
	}
	assert_in_range(asked, 6, 9);
}

/* Next door the start asks by the clock while there is room; else by what is written. */
static void a_start_next_door_asks_by_the_clock(void **state)
{
	static const struct {
		int64_t rtt;
		size_t held;
		unsigned int asked;
	} paths[] = {
		{ MS / 20, 64000, 20 },
		{ MS / 20, 600000, 1000 },
		{ 50 * MS, 64000, 1000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct aggregate a;
		unsigned int asked = 0;
		int64_t at = S;

		aggregate_init(&a, AGGREGATE_DELAY, 0, S);
		aggregate_expect(&a, paths[i].rtt, paths[i].rtt);
		a.limit = 1000000;
		for (uint64_t run = 1; run <= 1000; run++, at += MS / 100)
			asked += aggregate_asks(&a, run * 150000, paths[i].held, at);
		assert_int_equal(asked, paths[i].asked);
	}
}

/* Which a kernel may say that takes more for outstanding than it did. */
static void fewer_bytes_than_before_are_no_rate(void **state)
{
	static const uint64_t delivered[] = { 100000, 92000, 120000, 150000 };
	struct aggregate a;

	(void)state;
	aggregate_init(&a, AGGREGATE_DELAY, 0, 0);
	for (int i = 0; i < 12; i++) {
		int64_t rtt = i < 8 ? 50 * MS : 100 * MS, at = (1 + i) * S / 50;
		struct aggregate_ack ack = {
			.sent_at = at, .left_at = at, .acked_at = at + rtt,
			.counted_at = at + rtt,
			.delivered = i < 8 ? 0 : delivered[i - 8],
			.held = 100000, .least = 50 * MS, .mss = 1448,
			.more = true,
		};

		aggregate_acked(&a, &ack);
		assert_true(a.best <= 1500000 && a.rate <= 1500000);
	}
	assert_int_equal(a.state, AGGREGATE_BOUND);
	assert_in_range(a.limit, 15000, 90000);
}

/*
 * The first round behind a rest holds less than the limit, and its burst is a queue for a
 * moment. That tells nothing of the limit.
 */
static void a_rest_does_not_shrink_the_limit(void **state)
{
	struct aggregate a;
	int64_t at = 100 * S;

	(void)state;
	aggregate_init(&a, AGGREGATE_DELAY, 0, 0);
	a.state = AGGREGATE_BOUND;
	a.after_idle = false;
	a.base = 50 * MS;
	a.limit = 67000;
	a.best = a.rate = 10 * MBIT;
	a.period_at = at;
	a.round_at = at;
	a.limited_from = at + S;	/* it is not in the way before */
	a.before = (struct aggregate_round){
		.held = 67000, .rtt = 57 * MS, .least = 57 * MS,
		.rate = 10 * MBIT, .limited = true,
	};
	for (int i = 0; i < 30 && !a.rounds; i++) {
		struct aggregate_ack ack = {
			.sent_at = at + i * MS, .left_at = at + i * MS,
			.acked_at = at + i * MS + 57 * MS,
			.counted_at = at + i * MS + 57 * MS,
			.delivered = (uint64_t)i * 1250,
			.held = (size_t)i * 2000,
			.least = 50 * MS, .mss = 1448, .more = true,
		};

		aggregate_acked(&a, &ack);
	}
	assert_int_equal(a.rounds, 1);
	assert_int_equal(a.limit, 67000);
}

/*
 * The path is constant. That its first windows are a queue of their own is no deviation: as one
 * it was 26 ms.
 */
static void delays_of_a_start_do_not_deviate(void **state)
{
	const struct model_params is = mile(7.04, 50 * MS, 100, 4);
	double most = 0;
	struct random r;
	struct model model;

	(void)state;
	random_begin(&r, __func__);
	model_init(&model, &is, &r);
	model_offer(&model, 0, 256 << 10);
	while (!model.conn[0].done_at) {
		double deviation = model.paths.path[0].variation.deviation;

		if (deviation > most)
			most = deviation;
		model_run(&model, MS);
	}
	assert_true(most > 0);
	assert_true(most < 0.003);
	model_fini(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_is_not_slowed),
		cmocka_unit_test(a_start_loses_little),
		cmocka_unit_test(a_bulk_behind_objects_loses_little),
		cmocka_unit_test(a_page_does_not_hide_the_rate),
		cmocka_unit_test(who_waits_for_room_is_told_of_it),
		cmocka_unit_test(a_start_next_door_asks_by_the_clock),
		cmocka_unit_test(fewer_bytes_than_before_are_no_rate),
		cmocka_unit_test(a_rest_does_not_shrink_the_limit),
		cmocka_unit_test(delays_of_a_start_do_not_deviate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
