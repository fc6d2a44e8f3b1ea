/* SPDX-License-Identifier: MIT */
/*
 * The policies of two paths that send some bytes over both, by the engine's own decision in virtual
 * time: where DEMS has the two meet, and what goes twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/path/variation.h"
#include "path_play.h"

enum { NEAR, FAR };

#define MBIT (1e6 / 8)

static const struct play_mile fast[] = { { 20e6, 0.005 }, { 50e6, 0.010 } };
static const struct play_mile wifi_lte[] = {
	{ 7.04 * MBIT, 0.025 }, { 9.185 * MBIT, 0.135 },
};

/* Far less than what delays deviate: it helps as any other path does. */
static void the_far_path_stops_later_by_what_delays_deviate(void **state)
{
	static const double deviations[] = { 0, 0.002, 0.004, 0.005, 0.050 };

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		double bytes = (0.005 - deviations[i]) * fast[NEAR].rate;
		uint64_t left = bytes > 0 ? (uint64_t)bytes : 0;
		struct play play;

		for (int more = 0; more < 2; more++) {
			play_init(&play, &path_dems_f, fast, 2);
			play_deviate(&play, deviations[i]);
			play_shut(&play, NEAR);
			if (!more && left < PLAY_MESSAGE)
				continue;
			play_object(&play, 0, more ? left + PLAY_MESSAGE :
				    left - PLAY_MESSAGE, true);
			assert_int_equal(play_next(&play).act,
					 more ? NEXT_SEND : NEXT_WAIT);
		}
	}
}

static bool takes_from_end(const struct play *play, unsigned int lane)
{
	return path_choice_from_end(&play->s.path, &play->lane[lane].pipe,
				    &play->conn[0]);
}

static void the_far_one_of_two_takes_from_the_end(void **state)
{
	struct play play;
	const struct conn *c = &play.conn[0];

	(void)state;
	play_init(&play, &path_dems_b, fast, 2);
	play_object(&play, 0, 1 << 20, true);
	play_next(&play);
	assert_true(path_choice_cuts(&play.s.path, c));
	assert_false(takes_from_end(&play, NEAR));
	assert_true(takes_from_end(&play, FAR));
	/* Where the near path is gone nothing comes from the front but by this one. */
	play.lane[NEAR].pipe.doubtful = true;
	assert_false(takes_from_end(&play, FAR));
	play.lane[NEAR].pipe.doubtful = false;
	/* Of two that are alike one is the far one. */
	play.lane[FAR].pipe.info.rttmin_ms = play.lane[NEAR].pipe.info.rttmin_ms;
	assert_false(takes_from_end(&play, NEAR));
	assert_true(takes_from_end(&play, FAR));
	sched_set_paths(&play.s, &path_ecf, 0, 0);
	play_next(&play);
	assert_false(path_choice_cuts(&play.s.path, c));
}

/* Backwards all of it would be there before the first byte can be read. */
static void what_is_bound_to_the_far_path_goes_from_the_front(void **state)
{
	struct play play;
	struct conn *c = &play.conn[0];

	(void)state;
	play_init(&play, &path_dems_b, fast, 2);
	play.s.path.bound = true;
	play_object(&play, 0, 1 << 20, true);
	c->paths = 1 << FAR;
	play_next(&play);
	assert_false(takes_from_end(&play, FAR));
	assert_false(path_choice_cuts(&play.s.path, c));
	c->paths = 1 << NEAR;
	assert_false(path_choice_cuts(&play.s.path, c));
	c->paths = 1 << NEAR | 1 << FAR;
	assert_true(takes_from_end(&play, FAR));
	assert_true(path_choice_cuts(&play.s.path, c));
}

/* Bytes that go twice, for an object of @bytes: by the equations of DEMS no more than @most. */
static uint64_t goes_twice(const struct path_policy *policy,
			   const struct play_mile *miles, unsigned int bytes,
			   double deviation, double *took)
{
	struct play play;

	play_init(&play, policy, miles, 2);
	play_deviate(&play, deviation);
	play_object(&play, 0, bytes, true);
	*took = play_run(&play);
	assert_int_equal(play.lane[NEAR].bytes + play.lane[FAR].bytes, bytes);
	return play.again;
}

static void what_goes_twice_is_bounded(void **state)
{
	static const struct { double far_s, most, took; } known[] = {
		{ 0.035, 60e3, 0.160 }, { 0.135, 159e3, 0.217 },
		{ 0.235, 259e3, 0.273 },
	};
	double message = PLAY_MESSAGE / wifi_lte[NEAR].rate;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct play_mile miles[] = { wifi_lte[NEAR], wifi_lte[FAR] };
		double took;

		miles[FAR].delay = known[i].far_s;
		assert_int_equal(goes_twice(&path_dems_b, miles, 256 << 10, 0.010,
					    &took), 0);
		assert_near(took, known[i].took - 0.0005, 2 * message + 0.001);
		assert_in_range(goes_twice(&path_dems_s, miles, 256 << 10, 0, &took),
				1, (uint64_t)known[i].most + 3 * PLAY_MESSAGE);
		assert_near(took, known[i].took - 0.0005, 2 * message + 0.001);
		/* (5.13): 10 KB for 10 ms, and next to nothing where delays are known. */
		assert_near((double)goes_twice(&path_dems_f, miles, 256 << 10,
					       0.010, &took),
			    9962 - 3 * PLAY_MESSAGE, 6 * PLAY_MESSAGE);
		assert_near(took, known[i].took - 0.0005, 0.010 + 2 * message);
		assert_in_range(goes_twice(&path_dems_f, miles, 256 << 10, 0, &took),
				0, 2 * PLAY_MESSAGE);
	}
}

static bool repeats(const struct play *play, unsigned int lane)
{
	const struct path_choice *choice = &play->s.path;

	return path_choice_repeats(choice, play->lane[lane].pipe.path,
				   choice->now + NS_PER_SEC);
}

/* By its window alone a copy arrives at once, whatever stands before it. */
static void nothing_goes_twice_over_a_path_of_unknown_rate(void **state)
{
	struct play play;

	(void)state;
	play_init(&play, &path_dems_f, wifi_lte, 2);
	play_object(&play, 0, 256 << 10, true);
	play_next(&play);
	assert_true(repeats(&play, NEAR));
	assert_true(repeats(&play, FAR));
	play.lane[NEAR].pipe.info.rate = 0;
	assert_false(repeats(&play, NEAR));
	assert_true(repeats(&play, FAR));
}

/* It is 20 ms farther than is known: the near path goes on instead of waiting for it. */
static void what_goes_twice_helps_where_delays_are_others(void **state)
{
	const struct path_policy *policies[] = {
		&path_dems_b, &path_dems_f, &path_dems_s,
	};
	double took[3];

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct play play;

		play_init(&play, policies[i], wifi_lte, 2);
		play_deviate(&play, 0.020);
		play.lane[FAR].mile.delay += 0.020;
		play_object(&play, 0, 256 << 10, true);
		took[i] = play_run(&play);
	}
	assert_true(took[1] < took[0] - 0.008);
	assert_true(took[2] < took[0] - 0.008);
}

/* Whichever is through first: every message goes over both, and new ones behind that. */
static void copies_go_over_every_path(void **state)
{
	struct play play;
	double near;

	(void)state;
	play_init(&play, &path_copies, wifi_lte, 2);
	play_object(&play, 0, 256 << 10, true);
	near = wifi_lte[NEAR].delay + (256 << 10) / wifi_lte[NEAR].rate;
	/* The far one sends faster, and is there later. */
	assert_near(play_run(&play), near - 1e-6,
		    4 * PLAY_MESSAGE / wifi_lte[NEAR].rate);
	assert_in_range(play.again, (256 << 10) - 4 * PLAY_MESSAGE, 256 << 10);
}

static void a_deviation_is_of_a_mean_for_each_part_in_flight(void **state)
{
	struct variation v = { 0 };

	(void)state;
	variation_sample(&v, 0, 0.010);
	variation_sample(&v, 25000, 0.030);
	assert_true(v.deviation == 0);
	variation_sample(&v, 9999, 0.010);
	variation_sample(&v, 20000, 0.030);
	assert_near(v.deviation, 0, 1e-6);
	/* 8 ms off, a quarter of that; then by the mean that moved a quarter of the way. */
	variation_sample(&v, 5000, 0.018);
	assert_near(v.deviation, 0.002 - 1e-6, 2e-6);
	variation_sample(&v, 5000, 0.018);
	assert_near(v.deviation, 0.003 - 1e-6, 2e-6);
	/* However much is in flight. */
	variation_sample(&v, SIZE_MAX, 1);
	variation_sample(&v, 1 << 30, 1);
	assert_near(v.deviation, 0.00225 - 1e-6, 2e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_far_path_stops_later_by_what_delays_deviate),
		cmocka_unit_test(the_far_one_of_two_takes_from_the_end),
		cmocka_unit_test(what_is_bound_to_the_far_path_goes_from_the_front),
		cmocka_unit_test(what_goes_twice_is_bounded),
		cmocka_unit_test(nothing_goes_twice_over_a_path_of_unknown_rate),
		cmocka_unit_test(what_goes_twice_helps_where_delays_are_others),
		cmocka_unit_test(copies_go_over_every_path),
		cmocka_unit_test(a_deviation_is_of_a_mean_for_each_part_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
