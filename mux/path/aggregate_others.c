/* SPDX-License-Identifier: MIT */
/*
 * Whose queue is it? Giving way to our own makes it go; giving way to other
 * people's makes it theirs altogether.
 */
#include "aggregate_inside.h"

/* After so many rounds in vain others are made way for. */
enum { IN_VAIN = 3, MET = 2 };

/* That is: with our rate below so much of its best, and the limit near it. */
#define LESS 0.7
#define FOREIGN (25 * NS_PER_MS)
enum { ALMOST_NOTHING = 2 };	/* segments */
#define IN_LINE 1.25

/* Or with less in flight by a part, and the round trip not nearly as much. */
#define NEARLY 1.15
#define PART 0.95

/* To see whether others are still there, one round with so much is enough. */
#define ASKING 0.7
#define YIELD_MIN (5 * NS_PER_SEC)
#define YIELD_MAX (60 * NS_PER_SEC)
#define CALM (5 * NS_PER_SEC)

void others_forget(struct aggregate *a)
{
	a->yield_for = YIELD_MIN;
}

/*
 * Who holds next to nothing and yet meets a queue knows whose that is before
 * giving way to it. Once may be a moment in which this machine stood still.
 */
bool others_are_met(struct aggregate *a, const struct aggregate_ack *ack,
		    int64_t rtt)
{
	int64_t queue = rtt - path_base(a);

	if (queue <= aggregate_slack(a, ack->mss))
		a->met = 0;
	if (a->state == AGGREGATE_YIELD || !ack->more ||
	    ack->before > ALMOST_NOTHING * ack->mss)
		return false;
	if (queue > FOREIGN && queue > path_base(a) / 2 &&
	    queue > 2 * aggregate_slack(a, ack->mss))
		a->met++;
	else
		a->met = 0;
	return a->met >= MET;
}

/*
 * Alone on a path, what we have in flight is the queue: with less of it the
 * round trip is shorter by the same part.
 */
static bool is_left_alone(const struct aggregate *a)
{
	double part = (double)a->limit / (double)a->limit_before;
	double wanted = (double)a->least_before * part * NEARLY;

	return part > PART || (double)a->least <= wanted;
}

/*
 * And we send as fast as before. Where the queue stays, or our rate falls
 * instead, it is other people's.
 */
bool others_stay(struct aggregate *a, int64_t queue, size_t mss)
{
	double best = a->best_new > a->best_old ? a->best_new : a->best_old;
	int64_t wish = aggregate_slack(a, mss);
	double path = a->most * (double)(path_base(a) + wish) / 1e9;

	if (queue <= wish + wish / 2)
		a->in_vain = 0;
	else if (a->limit <= FLOOR_SEGMENTS * mss ||
		 (a->limited && a->most < best * LESS &&
		  (double)a->limit <= path * IN_LINE))
		a->in_vain++;
	else if (a->limited && a->limit_before && queue > 2 * wish &&
		 !is_left_alone(a))
		a->in_vain++;
	return a->in_vain >= IN_VAIN;
}

void others_take_it(struct aggregate *a, int64_t now)
{
	a->state = AGGREGATE_YIELD;
	a->limit = AGGREGATE_NONE;
	a->met = 0;
	a->dipping = false;
	a->yields++;
	a->yield_until = now + a->yield_for;
	a->yield_for = a->yield_for * 2 < YIELD_MAX ?
		a->yield_for * 2 : YIELD_MAX;
}

void others_mind_calm(struct aggregate *a, bool calm, int64_t now)
{
	if (!calm)
		a->calm_since = 0;
	else if (!a->calm_since)
		a->calm_since = now;
	else if (now - a->calm_since > CALM)
		a->yield_for = YIELD_MIN;
}

/*
 * After others, with care: should they still be there, what is given up is
 * theirs for long.
 */
void others_may_be_gone(struct aggregate *a, int64_t now, size_t mss)
{
	aggregate_bind(a, now, mss);
	if (a->latest * (double)a->least / 1e9 * ASKING <= (double)a->limit)
		return;
	a->limit_before = (size_t)(a->latest * (double)a->least / 1e9);
	a->limit = (size_t)((double)a->limit_before * ASKING);
	a->in_vain = IN_VAIN - 1;
}
