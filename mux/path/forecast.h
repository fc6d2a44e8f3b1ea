/* SPDX-License-Identifier: MIT */
/*
 * What a path makes of bytes that are given to it: how much of it has arrived at the other end
 * after some time, and when the last of it has.
 *
 * A path sends at its rate, behind what it holds already, and each byte arrives a delay later.
 * As long as its windows do not fill it, a window leaves each round trip, and the next one is
 * twice as large. The rate is the one that the path's limit has measured; until there is one,
 * windows alone are counted.
 *
 * No sockets, no clock.
 */
#ifndef TM3_FORECAST_H
#define TM3_FORECAST_H

#include <stddef.h>
#include <stdint.h>

struct path;

/* The last of @bytes more than were given to @path, by the clock of @now. */
int64_t path_arrives_at(const struct path *path, int64_t now, size_t bytes);

struct forecast {
	double delay;		/* one way, s */
	double trip;		/* after which a window has room again, s */
	double rate;		/* bytes a second; 0: not known */
	double full;		/* bytes under way that fill the path; 0: not known */
	double window;		/* of all its pipes, bytes */
	double behind;		/* bytes that leave before */
};

/* Of @path, which has a pipe. */
struct forecast forecast_of(const struct path *path, int64_t now);

/* Seconds until the last of @bytes has arrived. */
double forecast_arrival(const struct forecast *f, double bytes);

/* Bytes that have arrived after @seconds, where there are enough. */
double forecast_arrived(const struct forecast *f, double seconds);

/* @len bytes are about to be given to @path, and are not held by it yet. */
void forecast_gives(struct path *path, size_t len, int64_t now);

#endif
