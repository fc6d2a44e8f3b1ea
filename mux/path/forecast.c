/* SPDX-License-Identifier: MIT */
#include "forecast.h"

#include "../pipe/pipe.h"
#include "path.h"

/* No window is larger, bytes: where no rate is known, they double up to here. */
#define WINDOW_ENDLESS 1e12

/* Where the limit measures none, what the kernel says of the pipes. */
static double rate_of(const struct path *path)
{
	double sum = 0;
	unsigned int i;

	if (path->aggregate.mode == AGGREGATE_DELAY)
		return path->aggregate.rate;
	for (i = 0; i < path->npipes; i++)
		sum += path->pipes[i]->info.rate;
	return sum;
}

static double window_of(const struct path *path)
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < path->npipes; i++)
		sum += (double)path->pipes[i]->info.cwnd *
		       path->pipes[i]->info.mss;
	return sum;
}

static bool is_grown(const struct forecast *f)
{
	return f->rate > 0 && f->window >= f->full;
}

static double between(double least, double x, double most)
{
	return x < least ? least : x > most ? most : x;
}

/* The least that waits of what the pipes hold: the rest fills the path. */
static double beyond(double held, double full)
{
	return held > full ? held - full : 0;
}

/*
 * Bytes that were given to the path and have not left, by its rate of now: what was given before the
 * rate was another one leaves at this one, too. 0: while none was known nobody counted.
 */
static double given(const struct path *path, double rate, int64_t now)
{
	double left = path->given - (double)(now - path->given_at) / 1e9 * rate;

	return left > 0 ? left : 0;
}

/*
 * Of what is not acknowledged a part has passed the bottleneck: all but what was given to
 * the path faster than it sends. The rate may be wrong by a little, and the count with it,
 * so what the pipes hold has the last word: more than that does not wait, and of it no more
 * than fills the path has passed.
 */
static double waiting(const struct path *path, const struct forecast *f,
		      int64_t now)
{
	double held = (double)path_held(path);
	double counted = given(path, f->rate, now);

	if (!is_grown(f))
		return held;
	return between(beyond(held, f->full), counted, held);
}

struct forecast forecast_of(const struct path *path, int64_t now)
{
	double base = path_base_ms(path) / 1e3;
	struct forecast f = {
		.delay = base / 2,
		.trip = path_trip_ms(path) / 1e3,
		.rate = rate_of(path),
		.window = window_of(path),
	};

	f.full = f.rate * base;
	f.behind = waiting(path, &f, now);
	return f;
}

/* Up to which windows double: where they fill the path, or for ever. */
static double full_of(const struct forecast *f)
{
	return f->rate > 0 ? f->full : WINDOW_ENDLESS;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* Seconds until so many bytes have left, those that wait before them among them. */
static double sent_after(const struct forecast *f, double bytes)
{
	double window = f->window > 0 ? f->window : WINDOW_ENDLESS;
	double began = 0;

	while (window < least(bytes, full_of(f))) {
		bytes -= window;
		began += f->trip;
		window *= 2;
	}
	return began + (f->rate > 0 ? bytes / f->rate : 0);
}

double forecast_arrival(const struct forecast *f, double bytes)
{
	return f->delay + sent_after(f, f->behind + bytes);
}

int64_t path_arrives_at(const struct path *path, int64_t now, size_t bytes)
{
	struct forecast f = forecast_of(path, now);

	return now + (int64_t)(forecast_arrival(&f, (double)bytes) * 1e9);
}

/* The other way round. */
static double sent_in(const struct forecast *f, double seconds)
{
	double window = f->window > 0 ? f->window : WINDOW_ENDLESS;
	double sent = 0;

	if (seconds <= 0)
		return 0;
	while (window < full_of(f) && seconds > f->trip) {
		sent += window;
		seconds -= f->trip;
		window *= 2;
	}
	if (f->rate <= 0)
		return sent + window;
	return sent + (window < f->full ? least(window, f->rate * seconds) :
		       f->rate * seconds);
}

double forecast_arrived(const struct forecast *f, double seconds)
{
	double bytes = sent_in(f, seconds - f->delay) - f->behind;

	return bytes > 0 ? bytes : 0;
}

/* What was acknowledged has left, whatever the rate says. */
void forecast_gives(struct path *path, size_t len, int64_t now)
{
	double rate = rate_of(path), held = (double)path_held(path);
	double before = path->given_at ? given(path, rate, now) :
		beyond(held, rate * path_base_ms(path) / 1e3);

	path->given = rate > 0 ? least(before, held) + (double)len : 0;
	path->given_at = rate > 0 ? now : 0;
}
