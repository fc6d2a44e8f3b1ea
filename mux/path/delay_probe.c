/* SPDX-License-Identifier: MIT */
/*
 * Experiments: for a round the pipes hold less, or more, to see what it does.
 * Less shows the path without our queue. And whose queue is it? Alone on a path
 * the round trip changes by the same part as what we hold; among others by less,
 * which is our share of what is in flight.
 */
#include "aggregate_inside.h"

/* The base is renewed this often, by so much less than fills the path. */
#define PERIOD (10 * NS_PER_SEC)
#define LESS 0.75
#define LONGER 1.5

/* Others are asked for where the rate fell to so much of its best. */
#define FALLEN 0.7

/* By that much more, or three times the noise; beyond that it tells nothing. */
#define MORE_MIN 0.1
#define MORE_MAX 0.5
#define NOISES 3

/* A smaller share of the queue is not all of it; below that it is noise. */
#define SHARE 0.7
#define NO_SHARE (-0.5)

/* So many probes in vain, not farther apart, are no chance. */
enum { IN_VAIN = 3, APART = 12 };

/* YIELD: whether others are still there is asked ever less often. */
#define ASK_LESS 0.7
#define YIELD_MIN (NS_PER_SEC / 2)
#define YIELD_MAX (30 * NS_PER_SEC)

static void yield(struct aggregate *a, int64_t ns, int64_t now)
{
	a->state = AGGREGATE_YIELD;
	a->limit = AGGREGATE_NONE;
	a->yield_for = ns < YIELD_MAX ? ns : YIELD_MAX;
	a->yield_until = now + a->yield_for;
}

static double our_share(const struct aggregate *a,
			const struct aggregate_round *r)
{
	return (r->rtt / a->before.rtt - 1) / (r->held / a->before.held - 1);
}

static bool probe(struct aggregate *a, enum aggregate_probe kind,
		  const struct aggregate_round *r, double bytes, int64_t now)
{
	a->probe = kind;
	a->probe_from = a->limit;
	a->before = *r;
	aggregate_set_limit(a, bytes, now);
	return true;
}

/* --- how long is the path? --- */

/* What is left with less of ours may be others' queue: so by a part at most. */
static void renew_base(struct aggregate *a, const struct aggregate_round *r,
		       int64_t now)
{
	double most = base_of(a) * LONGER;

	delay_new_period(a, now);
	a->base_new = smaller(r->least, most);
}

static void base_ends(struct aggregate *a, const struct aggregate_round *r,
		      double was, int64_t now)
{
	double slack = delay_slack(a);

	if (r->least + slack / 2 < was) {
		/* Shorter than was known: and again, soon. */
		aggregate_set_limit(a, r->held * (r->least + slack) / r->least,
				    now);
		a->period_at = now - PERIOD;
		return;
	}
	aggregate_set_limit(a, (double)a->probe_from, now);
	renew_base(a, r, now);
}

/* --- are there others? --- */

/*
 * Others come by little and little, and our rate falls; or they were there first,
 * and that the limit shrinks does not help.
 */
static bool is_suspicious(const struct aggregate *a,
			  const struct aggregate_round *r)
{
	double queue = r->least - base_of(a), slack = delay_slack(a);

	if (!r->limited || queue <= slack)
		return false;
	if (queue <= 2 * slack)
		return a->rate < FALLEN * delay_best(a);
	return a->limit <= FLOOR_SEGMENTS * a->mss ||
		(a->before.held > 0 && r->held < 0.9 * a->before.held &&
		 our_share(a, r) < SHARE);
}

static bool more_begins(struct aggregate *a, const struct aggregate_round *r,
			int64_t now)
{
	double part = NOISES * a->noise / r->rtt;

	if (part > MORE_MAX || !is_suspicious(a, r))
		return false;
	part = larger(larger(part, 2 * delay_slack(a) / r->rtt), MORE_MIN);
	return probe(a, PROBE_MORE, r, r->held +
		     larger(part * r->held, 2 * (double)a->mss), now);
}

static void more_ends(struct aggregate *a, const struct aggregate_round *r,
		      int64_t now)
{
	double share = our_share(a, r);

	a->limit = a->probe_from;
	if (r->held < 1.05 * a->before.held)
		return;
	if (share >= SHARE && a->vain) {
		a->vain--;
	} else if (share >= SHARE) {
		/* The path has become slower. */
		a->best_new = a->rate;
		a->best_old = 0;
	} else {
		/* More costs nothing: it is either others' queue or none. */
		aggregate_set_limit(a, larger(r->held, (double)a->limit), now);
		if (r->least <= base_of(a) + delay_slack(a) || share < NO_SHARE)
			return;
		a->vain = a->rounds - a->vain_at > APART ? 1 : a->vain + 1;
		a->vain_at = a->rounds;
	}
	if (a->vain < IN_VAIN)
		return;
	a->yields++;
	yield(a, YIELD_MIN, now);
}

static void less_ends(struct aggregate *a, const struct aggregate_round *r,
		      int64_t now)
{
	double rate = a->before.held / a->before.rtt * 1e9;

	if (r->held < 0.95 * a->before.held &&
	    (r->least <= base_of(a) + delay_slack(a) ||
	     our_share(a, r) > SHARE)) {
		delay_bind(a, rate, now);
		return;
	}
	yield(a, 2 * a->yield_for, now);
	/* A path that has become longer looks the same: so that is learnt. */
	if (now - a->period_at <= PERIOD)
		return;
	renew_base(a, r, now);
}

/* --- */

void probe_ends(struct aggregate *a, const struct aggregate_round *r,
		double was, int64_t now)
{
	enum aggregate_probe kind = a->probe;

	a->probe = PROBE_NONE;
	if (kind == PROBE_BASE)
		base_ends(a, r, was, now);
	else if (kind == PROBE_MORE)
		more_ends(a, r, now);
	else
		less_ends(a, r, now);
}

bool probe_begins(struct aggregate *a, const struct aggregate_round *r,
		  int64_t now)
{
	if (a->state == AGGREGATE_YIELD)
		return now >= a->yield_until && r->least > base_of(a) +
			delay_slack(a) &&
			probe(a, PROBE_LESS, r, ASK_LESS * r->held, now);
	a->best_new = larger(a->best_new, a->rate);
	if (r->least <= base_of(a) + delay_slack(a) / 2)
		a->vain = 0;
	if (more_begins(a, r, now))
		return true;
	if (now - a->period_at <= PERIOD)
		return false;
	return probe(a, PROBE_BASE, r, LESS * r->held * base_of(a) / r->least,
		     now);
}
