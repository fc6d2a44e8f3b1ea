/* SPDX-License-Identifier: MIT */
/* The limit whichever law sets it: how it is let out, and who is to report. */
#include <string.h>

#include "aggregate_inside.h"

/* Nobody needs more: no limit from here on. */
#define LARGE (double)(8 << 20)

/*
 * In one burst the first flight would be too much for many a queue. So a part of
 * it goes at once, one and a half times as much in a round trip, or at this pace
 * where that is more. On a short path acknowledgements are sooner than any pace.
 */
#define FIRST_BURST (double)(40 * 1448)
#define FIRST_TRIP 1.5
#define FIRST_PACE (1448.0 / NS_PER_MS)
#define FIRST_SHORT (10 * NS_PER_MS)

/* Where the rate is known: what one connection would send at once, then this. */
#define AGAIN_BURST (double)(10 * 1448)
#define AGAIN_TIME 0.01
#define AGAIN_PACE 1.25

/* Without a limit, one in so many bytes reports, at least. */
#define FREE_SPACING 6000.0

/* Where a round trip is shorter, the start asks no sooner than that. */
#define FREE_PAUSE (NS_PER_MS / 2)

/* An empty path is asked for its round trip this often. */
#define EMPTY_SPACING (10 * NS_PER_MS)

void aggregate_init(struct aggregate *a, enum aggregate_mode mode,
		    double lambda, int64_t now)
{
	memset(a, 0, sizeof(*a));
	a->mode = mode;
	a->lambda = lambda;
	a->limit = AGGREGATE_NONE;
	a->limited_from = a->limited_to = now;
	a->base = UNSEEN;
	if (mode == AGGREGATE_DELAY)
		delay_init(a, now);
}

void aggregate_expect(struct aggregate *a, int64_t least, int64_t mean)
{
	a->expected = least;
	if (least > 0)
		a->spread = larger(a->spread, (double)(mean - least));
}

int64_t aggregate_base(const struct aggregate *a)
{
	return a->base == UNSEEN ? 0 : (int64_t)a->base;
}

static int64_t trip(const struct aggregate *a)
{
	return aggregate_base(a) ? aggregate_base(a) : a->expected;
}

/* --- how the limit is let out --- */

static double paced(const struct aggregate *a, int64_t now)
{
	double since = now > a->idle_at ? (double)(now - a->idle_at) : 0;
	double burst, pace;

	if (a->state == AGGREGATE_BOUND) {
		burst = larger(AGAIN_BURST, AGAIN_TIME * a->rate);
		return burst + since * AGAIN_PACE * a->rate / 1e9;
	}
	if (trip(a) < FIRST_SHORT)
		return UNSEEN;
	pace = larger(FIRST_PACE, FIRST_TRIP * FIRST_BURST / (double)trip(a));
	return FIRST_BURST + since * pace;
}

/* What is more than before is let out over half a round trip. */
size_t aggregate_limit(const struct aggregate *a, int64_t now)
{
	double since = (double)(now - a->ramp_at), all, let;

	if (a->after_idle) {
		let = paced(a, now);
		return let < (double)a->limit ? (size_t)let : a->limit;
	}
	if (now >= a->ramp_until || a->limit <= a->ramp_from)
		return a->limit;
	all = (double)(a->limit - a->ramp_from);
	return a->ramp_from + (size_t)
		(all * since / (double)(a->ramp_until - a->ramp_at));
}

void aggregate_set_limit(struct aggregate *a, double bytes, int64_t now)
{
	bytes = larger(bytes, (double)(FLOOR_SEGMENTS * a->mss));
	a->ramp_from = aggregate_limit(a, now);
	a->limit = bytes < LARGE ? (size_t)bytes : AGGREGATE_NONE;
	a->ramp_at = a->ramp_until = now;
	if (a->limit != AGGREGATE_NONE && a->limit > a->ramp_from)
		a->ramp_until += trip(a) / 2;
}

size_t aggregate_room(const struct aggregate *a, size_t held, int64_t now)
{
	size_t limit = aggregate_limit(a, now);
	size_t room = held < limit ? limit - held : 0;

	/* Crumbs would cost the path a header each. */
	return aggregate_is_exact(a) && room < a->mss / 2 ? 0 : room;
}

void aggregate_limited(struct aggregate *a, int64_t now)
{
	a->waits++;
	if (a->limited_to && !a->after_idle) {
		a->limited_from = now;
		a->limited_to = 0;
	}
}

void aggregate_unlimited(struct aggregate *a, int64_t now)
{
	if (!a->limited_to)
		a->limited_to = now;
}

void aggregate_acked(struct aggregate *a, const struct aggregate_ack *ack)
{
	if (a->mode == AGGREGATE_DELAY)
		delay_acked(a, ack);
}

bool aggregate_joins(struct aggregate *a, const struct aggregate *first,
		     int64_t now)
{
	return a->mode == AGGREGATE_DELAY && delay_joins(a, first, now);
}

int64_t aggregate_round_takes(const struct aggregate *a)
{
	return (int64_t)(a->before.rtt + a->base / 2);
}

/* --- who is to report --- */

/* The path was empty for long enough that a burst would meet no other. */
static void mind_idle(struct aggregate *a, size_t held, int64_t now)
{
	if (held || now - a->asked_at <= trip(a) / 2)
		return;
	a->after_idle = true;
	a->idle_at = now;
	aggregate_unlimited(a, now);
	delay_idles(a, now);
}

/*
 * Within one host, or next to it, no queue is long enough to end the start, and half of
 * what a bulk's runs take would be to hear of each. Who may soon wait for room asks on.
 */
static bool has_just_asked(const struct aggregate *a, size_t held, int64_t now)
{
	return a->state == AGGREGATE_FREE && held < a->limit / 2 &&
	       trip(a) && trip(a) < FREE_PAUSE && now - a->asked_at < FREE_PAUSE;
}

bool aggregate_asks(struct aggregate *a, uint64_t written, size_t held,
		    int64_t now)
{
	double spacing = a->rate / 1e3;

	if (a->mode == AGGREGATE_OFF)
		return false;
	if (a->state != AGGREGATE_BOUND)
		spacing = larger(2 * spacing, FREE_SPACING);
	/* Who waits for room waits for one of these; and a round for some. */
	spacing = smaller(spacing, (double)a->limit / ROUND_SAMPLES);
	if (a->mode == AGGREGATE_DELAY)
		mind_idle(a, held, now);
	if ((double)(written - a->asked) < spacing &&
	    (held || now - a->asked_at < EMPTY_SPACING))
		return false;
	if (has_just_asked(a, held, now))
		return false;
	a->asked = written;
	a->asked_at = now;
	return true;
}

/* --- names --- */

const char *aggregate_state_name(enum aggregate_state state)
{
	static const char *const names[] = {
		[AGGREGATE_FREE] = "free",
		[AGGREGATE_BOUND] = "bound",
		[AGGREGATE_YIELD] = "yield",
	};

	return names[state];
}

const char *aggregate_mode_name(enum aggregate_mode mode)
{
	static const char *const names[] = {
		[AGGREGATE_DELAY] = "delay",
		[AGGREGATE_DSWA] = "dswa",
		[AGGREGATE_OFF] = "off",
	};

	return (size_t)mode < sizeof(names) / sizeof(names[0]) ? names[mode] :
		NULL;
}
