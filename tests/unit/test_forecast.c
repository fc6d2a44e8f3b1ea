/* SPDX-License-Identifier: MIT */
/* What waits on a path, as its forecast has it, when its rate becomes another one or all has left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/path/forecast.h"
#include "path_play.h"

enum { NEAR };

/* 10 ms there and back, with windows of 200 KB. */
static const struct play_mile fast[] = { { 20e6, 0.005 }, { 50e6, 0.010 } };

/* What @bytes that were given at @rate count as waiting, when it is @then, a second later. */
static double behind_after(double rate, double then, size_t bytes, size_t held)
{
	struct play play;
	size_t before;

	play_init(&play, &path_ecf, fast, 2);
	play.lane[NEAR].pipe.info.rate = rate;
	paths_send(&play.paths, &play.lane[NEAR].pipe, bytes, play.now, &before);
	play.now += NS_PER_SEC;
	play.lane[NEAR].pipe.info.rate = then;
	play.lane[NEAR].pipe.info.in_flight = held;
	return forecast_of(&play.paths.path[NEAR], play.now).behind;
}

/* 200 KB at 10 KB/s are 20 s, but at 1 MB/s all of it is through after one. */
static void what_waits_leaves_at_the_rate_of_now(void **state)
{
	(void)state;
	assert_near(behind_after(10e3, 10e3, 200000, 190100), 190000 - 1, 2);
	assert_near(behind_after(10e3, 1e6, 200000, 5000), 0, 1);
}

/* It was all acknowledged: what is given next waits behind nothing. */
static void a_path_that_was_empty_begins_anew(void **state)
{
	struct play play;
	size_t before;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	play.lane[NEAR].pipe.info.rate = 1e6;
	paths_send(&play.paths, &play.lane[NEAR].pipe, 4000000, play.now, &before);
	play.now += NS_PER_SEC;
	play.lane[NEAR].pipe.info.in_flight = 0;
	paths_send(&play.paths, &play.lane[NEAR].pipe, 5000, play.now, &before);
	play.lane[NEAR].pipe.info.in_flight = 5000;
	play.now += 4 * NS_PER_MS;
	assert_near(forecast_of(&play.paths.path[NEAR], play.now).behind, 1000 - 1, 2);
}

/*
 * 57 KB went before anybody knew a rate, and half of that has left: of the other half 10 KB fill the path.
 * What is given from then on is counted.
 */
static void what_was_given_without_a_rate_is_what_does_not_fill_the_path(void **state)
{
	struct pipe *pipe;
	struct play play;
	size_t before;

	(void)state;
	play_init(&play, &path_ecf, fast, 2);
	pipe = &play.lane[NEAR].pipe;
	pipe->info.rate = 0;
	paths_send(&play.paths, pipe, 57000, play.now, &before);
	play.now += 25 * NS_PER_MS;
	pipe->info.rate = 1e6;
	pipe->info.in_flight = 28500;
	assert_near(forecast_of(&play.paths.path[NEAR], play.now).behind, 18500, 1);
	paths_send(&play.paths, pipe, 10000, play.now, &before);
	pipe->info.in_flight = 38500;
	assert_near(forecast_of(&play.paths.path[NEAR], play.now).behind, 28500, 1);
	play.now += 10 * NS_PER_MS;
	pipe->info.in_flight = 28500;
	assert_near(forecast_of(&play.paths.path[NEAR], play.now).behind, 18500, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_leaves_at_the_rate_of_now),
		cmocka_unit_test(a_path_that_was_empty_begins_anew),
		cmocka_unit_test(what_was_given_without_a_rate_is_what_does_not_fill_the_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
