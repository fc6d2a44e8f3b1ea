/* SPDX-License-Identifier: MIT */
/*
 * DEMS, over two paths: what a connection has ready is a chunk. The near path takes its messages from
 * the front, the far one from the end, and stops as ecf has it: both are through at the same time.
 *
 * That time is a forecast. Once all is sent, either path may go on, towards where the other one
 * came from, with what that sent last:
 *
 *	dems-b	does not
 *	dems-s	goes on until all that is left is acknowledged, or went over both
 *	dems-f	as long as it arrives no later than the first copy does if that is late by what
 *		delays deviate; and the far path stops as much later
 *
 * Of a far path that is nearer than delays deviate this asks no more than of any other one: it
 * takes what is new, and goes on with what was sent a moment ago.
 */
#include "../conn/conn.h"
#include "../path/forecast.h"
#include "../path/paths.h"
#include "../pipe/pipe.h"
#include "path_policy.h"

enum { DEMS_PATHS = 2 };

static const struct path *other_than(const struct path_choice *choice,
				     const struct path *path)
{
	return &choice->paths->path[path == &choice->paths->path[0]];
}

/*
 * Where the two are alike one of them has to be the far one. Where the other one carries none of
 * @c nothing comes from the front but by this one.
 */
static bool is_far(const struct path_choice *choice, const struct path *path,
		   const struct conn *c)
{
	const struct path *other = other_than(choice, path);
	double own, its;

	if (!other->npipes || !conn_may_use(c, other->number) ||
	    !paths_works(choice->paths, other))
		return false;
	own = path_base_ms(path);
	its = path_base_ms(other);
	return own > its || (own >= its && path > other);
}

/* By how much one-way delays deviate, in s: of both paths the mean. */
static double deviation(const struct path_choice *choice)
{
	return (choice->paths->path[0].variation.deviation +
		choice->paths->path[1].variation.deviation) / 2;
}

static bool takes(const struct path_choice *choice, const struct path *path,
		  const struct conn *c)
{
	return path_is_in_time(choice, path, c, 0.5, 0);
}

static bool takes_later(const struct path_choice *choice,
			const struct path *path, const struct conn *c)
{
	return path_is_in_time(choice, path, c, 0.5, deviation(choice));
}

/*
 * Windows alone tell when bytes leave to a round trip only: by them what stands in a window goes at
 * once, and a copy behind it would always be the sooner one.
 */
static bool repeats(const struct path_choice *choice, const struct path *path,
		    int64_t arrives_at)
{
	struct forecast f = forecast_of(path, choice->now);
	double message = (double)pipe_payload(path->pipes[0]);
	double at = (double)(arrives_at - choice->now) / 1e9;

	return f.rate > 0 &&
	       forecast_arrival(&f, message) <= at + deviation(choice);
}

const struct path_policy path_dems_b = {
	.name = "dems-b",
	.summary = "over two paths: the near one takes from the front, the far one from the end, until they meet",
	.pick = path_nearest,
	.takes = takes,
	.from_end = is_far,
	.paths = DEMS_PATHS,
	.by_message = true,
	.by_size = true,
};

const struct path_policy path_dems_s = {
	.name = "dems-s",
	.summary = "the same, and both go on with what the other one sent, until it is acknowledged",
	.pick = path_nearest,
	.takes = takes,
	.from_end = is_far,
	.paths = DEMS_PATHS,
	.twice = PATH_TWICE_LAST,
	.by_message = true,
	.by_size = true,
};

const struct path_policy path_dems_f = {
	.name = "dems-f",
	.summary = "the same, but only with as much as delays deviate",
	.pick = path_nearest,
	.takes = takes_later,
	.repeats = repeats,
	.from_end = is_far,
	.paths = DEMS_PATHS,
	.twice = PATH_TWICE_LAST,
	.by_message = true,
	.by_size = true,
};
