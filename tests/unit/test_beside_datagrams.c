/* SPDX-License-Identifier: MIT */
/* The limit of a slow path that carries datagrams: how it is found, followed and kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bulk.h"
#include "limited.h"

/* The way up of LTE: a segment takes 5.3 ms, and 14 fill the path. */
#define BASE (71 * MS)
#define RATE (2.186 * MBIT)

enum { MSS = 1448, BOUND = 15 * MSS };

static struct aggregate_ack slow_ack(int64_t sent_at, int64_t rtt, int i)
{
	return (struct aggregate_ack){
		.sent_at = sent_at, .left_at = sent_at,
		.acked_at = sent_at + rtt, .counted_at = sent_at + rtt,
		.delivered = (uint64_t)(i * RATE / 1e3), .mss = MSS,
		.least = 70 * MS, .more = true,
	};
}

/*
 * A round in which the first message, of one a millisecond, took @rtt and each other one @more than
 * that.
 */
static void hear_slowly(struct aggregate *a, int64_t at, size_t held, int64_t rtt,
			int64_t more, bool datagrams)
{
	uint64_t rounds = a->rounds;

	for (int i = 0; a->rounds == rounds; i++) {
		struct aggregate_ack ack = slow_ack(at + i * MS, rtt + (i ? more : 0), i);

		assert_true(i < 1000);
		ack.held = held;
		ack.datagrams = datagrams;
		aggregate_acked(a, &ack);
	}
}

static void begin_slow(struct aggregate *a, int64_t at)
{
	begin_bound(a, BASE, at);
	a->best = a->rate = RATE;
	a->limit = BOUND;
	a->mss = MSS;
}

/* --- the start --- */

/*
 * A burst on an empty path: the first run has @len bytes and takes @sooner than the rate says. The
 * segments behind it are acknowledged as they leave the bottleneck.
 */
static void begin_start(struct aggregate *a, size_t len, int64_t sooner)
{
	int64_t one = (int64_t)(MSS * 1e9 / RATE), at = S;

	aggregate_init(a, AGGREGATE_DELAY, 0, 0);
	aggregate_expect(a, BASE, BASE);
	for (int i = 0; a->state == AGGREGATE_FREE; i++) {
		size_t bytes = len + (size_t)i * 2 * MSS;
		int64_t took = BASE + (int64_t)bytes * one / MSS;
		struct aggregate_ack ack = slow_ack(at, took - (i ? 0 : sooner), 0);

		assert_true(i < 40);
		ack.delivered = bytes;
		ack.held = bytes;
		ack.len = i ? 2 * MSS : len;
		aggregate_acked(a, &ack);
	}
}

/*
 * Bytes may wait behind a connection's OPEN, and go in one run with it. Once the base was 85 ms
 * then instead of 71, so for ten seconds there were three segments more in the queue.
 */
static void a_first_run_does_not_count_its_own_segments(void **state)
{
	static const size_t lens[] = { 24, 2 * MSS + 24, 4 * MSS };

	(void)state;
	for (unsigned int i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct aggregate a;

		begin_start(&a, lens[i], 0);
		assert_int_equal(a.state, AGGREGATE_BOUND);
		assert_in_range(aggregate_base(&a), BASE - 1, BASE + 2 * MS);
	}
}

/* The path is slower than it was for the first run: less is to be taken off. */
static void nor_is_the_base_less_than_handshakes_took(void **state)
{
	struct aggregate a;

	(void)state;
	begin_start(&a, 4 * MSS, 15 * MS);
	assert_in_range(aggregate_base(&a), BASE, BASE + MS);
}

/* --- when datagrams begin --- */

static void begin_to_pass(struct aggregate *a, int64_t at)
{
	struct aggregate_ack ack = slow_ack(at, BASE + 15 * MS, 0);

	ack.held = a->limit;
	ack.datagrams = true;
	aggregate_acked(a, &ack);
}

/* By the wish alone it would be 16 of 18 segments, as some are held that have arrived. */
static void the_limit_is_at_once_what_the_rate_needs(void **state)
{
	struct aggregate a;

	(void)state;
	begin_slow(&a, 100 * S);
	a.limit = 18 * MSS;
	begin_to_pass(&a, 100 * S);
	assert_in_range(a.limit, 14 * MSS, 15 * MSS);
	assert_true(a.round_at >= 100 * S + 2 * BASE);
}

/* The start's base is 9 ms too long: a process was late. */
static void and_the_base_is_asked_for(void **state)
{
	int64_t at = 100 * S;
	struct aggregate a;

	(void)state;
	begin_slow(&a, at);
	a.base = 80e6;
	a.limit = 18 * MSS;
	a.guessed = true;
	begin_to_pass(&a, at);
	hear_slowly(&a, at + S, a.limit, 86 * MS, 0, true);
	assert_int_equal(a.probe, PROBE_LESS);
	hear_slowly(&a, at + 2 * S, a.limit, 73 * MS, 0, true);
	assert_int_equal(a.probe, PROBE_NONE);
	assert_in_range(aggregate_base(&a), 73 * MS, 76 * MS);
	assert_in_range(a.limit, 14 * MSS, a.probe_from - MSS / 2);
	/* Once is enough. */
	hear_slowly(&a, at + 3 * S, a.limit, 77 * MS, 0, true);
	assert_int_equal(a.probe, PROBE_NONE);
}

static void without_datagrams_it_is_not(void **state)
{
	int64_t at = 100 * S;
	struct aggregate a;

	(void)state;
	begin_slow(&a, at);
	a.guessed = true;
	hear_slowly(&a, at, a.limit, 86 * MS, 0, false);
	assert_int_equal(a.probe, PROBE_NONE);
}

/* --- while they pass --- */

/* Three rounds in which one message met no queue, or all did not: how much the limit grows. */
static double growth(bool all, bool datagrams)
{
	int64_t at = 100 * S;
	struct aggregate a;

	begin_slow(&a, at);
	a.datagrams = datagrams;
	for (int i = 0; i < 3; i++)
		hear_slowly(&a, at + i * S, a.limit, 72 * MS, all ? 0 : 8 * MS, datagrams);
	return (double)a.limit / BOUND;
}

/* One that was lucky twice made the next round 19 ms longer for all. */
static void one_lucky_message_is_no_empty_path(void **state)
{
	(void)state;
	assert_true(growth(false, true) > 1.1);
	assert_true(growth(false, true) < 1.25);
	assert_true(growth(false, false) > 1.9);
}

static void a_path_that_is_empty_is_filled_as_ever(void **state)
{
	(void)state;
	assert_true(growth(true, true) > 1.9);
	assert_true(growth(true, false) > 1.9);
}

static void there_is_room_for_half_a_segment_or_none(void **state)
{
	struct aggregate a;

	(void)state;
	begin_slow(&a, 0);
	assert_int_equal(aggregate_room(&a, BOUND - 1, S), 1);
	a.datagrams = true;
	assert_int_equal(aggregate_room(&a, BOUND - MSS / 2 + 1, S), 0);
	assert_int_equal(aggregate_room(&a, BOUND - MSS / 2, S), MSS / 2);
	assert_int_equal(aggregate_room(&a, BOUND - 2 * MSS, S), 2 * MSS);
	/* On a fast path a message is nothing that a datagram notices. */
	a.best = 10 * MBIT;
	assert_int_equal(aggregate_room(&a, BOUND - 1, S), 1);
}

static size_t overshoot(bool datagrams)
{
	struct model_params is = mile(2.286, 70 * MS, 500, 8);
	struct model model;
	struct random r;
	size_t most;

	random_begin(&r, __func__);
	is.delayed_acks = true;
	is.datagrams = datagrams;
	bulk_from_the_start(&model, &is, &r, 3 * S);
	model.overshoot = 0;
	model_run(&model, 3 * S);
	most = model.overshoot;
	model_fini(&model);
	return most;
}

static void no_message_exceeds_the_limit(void **state)
{
	(void)state;
	assert_in_range(overshoot(false), MSS / 2, MSS);
	assert_int_equal(overshoot(true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_run_does_not_count_its_own_segments),
		cmocka_unit_test(nor_is_the_base_less_than_handshakes_took),
		cmocka_unit_test(the_limit_is_at_once_what_the_rate_needs),
		cmocka_unit_test(and_the_base_is_asked_for),
		cmocka_unit_test(without_datagrams_it_is_not),
		cmocka_unit_test(one_lucky_message_is_no_empty_path),
		cmocka_unit_test(a_path_that_is_empty_is_filled_as_ever),
		cmocka_unit_test(there_is_room_for_half_a_segment_or_none),
		cmocka_unit_test(no_message_exceeds_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
