/* SPDX-License-Identifier: MIT */
/*
 * What goes again on another pipe before its own is given up: which message that is, by numbers; and what
 * it makes of objects over modelled miles, in virtual time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "miles.h"
#include "model.h"
#include "mux/extension/reinject.h"
#include "random.h"

enum { SEGMENT = 1448, PIPES = 3 };

/* Each pipe has two segments under way, 50 ms away, and was heard of just before. */
static void begin(struct reinject_head *head)
{
	for (int i = 0; i < PIPES; i++)
		head[i] = (struct reinject_head){
			.there = true, .sent_at = (1000 + i) * MS,
			.tail = {
				.outstanding = 2 * SEGMENT,
				.in_flight = 2 * SEGMENT, .segment = SEGMENT,
				.heard_at = 990 * MS, .round_trip = 50 * MS,
				.patience = 80 * MS,
			},
		};
}

static int at(enum reinject_mode mode, const struct reinject_head *head,
	      int64_t now, int64_t *look_at)
{
	return reinject_pick(mode, false, head, PIPES, now, look_at);
}

static void timely_takes_what_is_silent_for_longer_than_round_trips(void **state)
{
	struct reinject_head head[PIPES];
	int64_t look_at;

	(void)state;
	begin(head);
	assert_int_equal(at(REINJECT_TIMELY, head, 1079 * MS, &look_at), -1);
	assert_int_equal(look_at, 1080 * MS);
	assert_int_equal(at(REINJECT_TIMELY, head, 1080 * MS, &look_at), 0);
	head[0].there = false;
	assert_int_equal(at(REINJECT_TIMELY, head, 1090 * MS, &look_at), 1);
	/* Something of it was acknowledged: it is alive. */
	head[1].tail.heard_at = 1060 * MS;
	assert_int_equal(at(REINJECT_TIMELY, head, 1090 * MS, &look_at), 2);
	head[2].there = false;
	assert_int_equal(at(REINJECT_TIMELY, head, 1090 * MS, &look_at), -1);
	assert_int_equal(look_at, 1140 * MS);
	head[1].there = false;
	assert_int_equal(at(REINJECT_TIMELY, head, 1090 * MS, &look_at), -1);
	assert_int_equal(look_at, TAIL_NEVER);
}

/* A single segment is acknowledged late by design. */
static void a_delayed_acknowledgement_is_no_loss(void **state)
{
	struct reinject_head head[PIPES];
	int64_t look_at;

	(void)state;
	begin(head);
	head[1].there = head[2].there = false;
	head[0].tail.outstanding = head[0].tail.in_flight = SEGMENT;
	assert_int_equal(at(REINJECT_TIMELY, head, 1090 * MS, &look_at), -1);
	assert_true(look_at > 1050 * MS + 40 * MS);
	/* Nothing was measured yet. */
	head[0].tail.patience = 0;
	assert_int_equal(at(REINJECT_TIMELY, head, 9000 * MS, &look_at), -1);
}

static void mpflex_takes_what_timed_out_or_is_asked_for(void **state)
{
	struct reinject_head head[PIPES];
	int64_t look_at;

	(void)state;
	begin(head);
	assert_int_equal(at(REINJECT_MPFLEX, head, 9000 * MS, &look_at), -1);
	head[1].timed_out = true;
	assert_int_equal(at(REINJECT_MPFLEX, head, 1010 * MS, &look_at), 1);
	assert_int_equal(at(REINJECT_TIMELY, head, 1010 * MS, &look_at), -1);
	/* Of all the oldest. */
	assert_int_equal(reinject_pick(REINJECT_MPFLEX, true, head, PIPES,
				       1010 * MS, &look_at), 0);
	assert_int_equal(at(REINJECT_OFF, head, 9000 * MS, &look_at), -1);
	assert_false(reinject_is_asked(75, 100));
	assert_true(reinject_is_asked(76, 100));
	assert_false(reinject_is_asked(0, 0));
}

static void what_goes_again_is_a_twentieth_and_a_burst(void **state)
{
	(void)state;
	assert_true(reinject_affords(0, 0, REINJECT_BURST));
	assert_false(reinject_affords(19, 0, REINJECT_BURST + 1));
	assert_true(reinject_affords(20, 0, REINJECT_BURST + 1));
	assert_false(reinject_affords(20, 1, REINJECT_BURST + 1));
}

/* --- over modelled miles --- */

enum { MIB = 1 << 20 };

static const struct model_params lte = {
	.rate = 9.185 * MBIT, .rtt = 70 * MS, .queue = 115000,
};

/* The far mile is good; the near one is as said. */
static struct model_params wifi(enum reinject_mode mode)
{
	return (struct model_params){
		.rate = 7.04 * MBIT, .rtt = 50 * MS, .queue = 88000,
		.pipes = 4, .paths = 2, .second = &lte,
		.policy = &sched_soonest, .mode = AGGREGATE_DELAY,
		.reinject = mode,
	};
}

struct took {
	double seconds;
	uint64_t again;
};

static struct took object(const struct model_params *is, uint64_t bytes,
			  unsigned int seed)
{
	struct random r;
	struct model model;
	struct took took;
	int64_t began;

	r = (struct random){ .state = seed };
	model_init(&model, is, &r);
	began = model.now;
	model_offer(&model, 0, bytes);
	model_run(&model, 20 * S);
	assert_int_equal(model.conn[0].arrived, bytes);
	took.seconds = (double)(model.conn[0].done_at - began) / 1e9;
	took.again = model.again;
	model_fini(&model);
	return took;
}

/*
 * Where it is silent earlier than that the other path carries what is new meanwhile, and nothing is idle. What
 * is under way then is 4.2 % of it, and what the limit allows beside.
 */
static void a_path_that_is_silent_at_the_end_costs_less(void **state)
{
	double off = 0, timely = 0, again = 0;
	int64_t from;

	(void)state;
	for (from = 390 * MS; from <= 510 * MS; from += 10 * MS) {
		struct model_params is = wifi(REINJECT_OFF);
		struct took took;

		is.silent_from = S + from;
		is.silent_to = is.silent_from + 300 * MS;
		off += object(&is, MIB, 1).seconds;
		is.reinject = REINJECT_TIMELY;
		took = object(&is, MIB, 1);
		timely += took.seconds;
		again += (double)took.again;
		assert_in_range(took.again, 1, MIB / 18);
	}
	assert_true(timely < 0.8 * off);
	assert_true(again < 0.05 * 13 * MIB);
}

/*
 * Each of its pipes is overdue a little later than the one before. What went again on one that is not
 * overdue yet was lost with it, and went no third time: 1.12 s.
 */
static void nothing_goes_again_on_the_path_that_is_silent(void **state)
{
	double off = 0, timely = 0;
	int64_t from;

	(void)state;
	for (from = 530 * MS; from <= 550 * MS; from += 5 * MS) {
		struct model_params far = lte, is = wifi(REINJECT_OFF);

		far.silent_from = S + from;
		far.silent_to = far.silent_from + 300 * MS;
		is.second = &far;
		off += object(&is, MIB, 1).seconds;
		is.reinject = REINJECT_TIMELY;
		timely += object(&is, MIB, 1).seconds;
	}
	assert_true(timely < 0.8 * off);
}

/* Which pipe lost something others make up for as soon as they are idle. */
static void on_one_path_what_a_pipe_lost_comes_by_another(void **state)
{
	double off = 0, timely = 0, again = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= 40; seed++) {
		struct model_params is = wifi(REINJECT_OFF);
		struct took took;

		is.paths = 1;
		is.loss = 0.02;
		is.delayed_acks = true;
		off += object(&is, MIB / 4, seed).seconds;
		is.reinject = REINJECT_TIMELY;
		took = object(&is, MIB / 4, seed);
		timely += took.seconds;
		again += (double)took.again;
	}
	/* 0.383 s, and 0.367: six of them wait for no timer of 200 ms and more. */
	assert_true(timely / 40 < off / 40 - 0.010);
	assert_true(again / 40 < 0.01 * MIB / 4);
}

static void without_loss_there_are_no_copies(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		struct model_params is = wifi(REINJECT_TIMELY);

		is.delayed_acks = seed % 2;
		is.jitter = seed % 3 * 5 * MS;
		is.late = seed % 4 * MS;
		assert_int_equal(object(&is, MIB, seed).again, 0);
		is.paths = 1;
		assert_int_equal(object(&is, MIB, seed).again, 0);
		is.reinject = REINJECT_MPFLEX;
		assert_int_equal(object(&is, MIB, seed).again, 0);
	}
}

/* What comes again is dropped, whatever is lost. */
static void nothing_is_missed_or_doubled(void **state)
{
	static const enum reinject_mode modes[] = { REINJECT_TIMELY, REINJECT_MPFLEX };

	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		struct model_params is = wifi(modes[seed % 2]);

		is.loss = 0.03;
		is.paths = 1 + seed / 2 % 2;
		object(&is, MIB, seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timely_takes_what_is_silent_for_longer_than_round_trips),
		cmocka_unit_test(a_delayed_acknowledgement_is_no_loss),
		cmocka_unit_test(mpflex_takes_what_timed_out_or_is_asked_for),
		cmocka_unit_test(what_goes_again_is_a_twentieth_and_a_burst),
		cmocka_unit_test(a_path_that_is_silent_at_the_end_costs_less),
		cmocka_unit_test(nothing_goes_again_on_the_path_that_is_silent),
		cmocka_unit_test(on_one_path_what_a_pipe_lost_comes_by_another),
		cmocka_unit_test(without_loss_there_are_no_copies),
		cmocka_unit_test(nothing_is_missed_or_doubled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
