/* SPDX-License-Identifier: MIT */
/*
 * Experiments of the law: to hold less, or more, for a round tells whose a queue is. Docs/decisions/0010
 * has the equations, 0022 what several paths do together.
 */
#include "delay_inside.h"

/* The base is asked for this often, and nobody yields for longer. */
#define PERIOD (10.0 * NS_PER_SEC)

/* The base is renewed with so much less than fills the path, by so much. */
#define LESS 0.75
#define LONGER 2.0

/* Others are asked for by holding that much more: less is told by as much, too. */
#define MORE 0.1
#define NOISES 3

/* Less than that of its best is a rate that fell, and of a queue not all. */
#define SHARE 0.7

static bool is_less(const struct aggregate_round *now,
		    const struct aggregate_round *then)
{
	return then->held > 0 && now->held < (1 - MORE) * then->held;
}

/* By what part @now differs from @then. */
static double change(double now, double then)
{
	return now / then - 1;
}

/*
 * What others do to the queue meanwhile looks like ours to who holds more, and like
 * theirs to who holds less. Where less was held just before, it falls out of both
 * together.
 */
static double our_share(const struct aggregate *a,
			const struct aggregate_round *r)
{
	double rtt = change(r->rtt, a->before.rtt);
	double held = change(r->held, a->before.held);

	if (a->probe == PROBE_MORE && is_less(&a->before, &a->earlier)) {
		rtt -= change(a->before.rtt, a->earlier.rtt);
		held -= change(a->before.held, a->earlier.held);
	}
	return rtt / held;
}

/*
 * The base becomes longer only here, and by more than the slack only if round
 * trips have been the same all the time: those of a queue of others are not.
 */
static void renew(struct aggregate *a, double least, int64_t now)
{
	double most = delay_wish(a);

	if (now - a->period_at <= PERIOD)
		return;
	if (a->state == AGGREGATE_YIELD || least < a->seen + delay_slack(a))
		most = larger(most, smaller(a->seen, LONGER * a->base));
	a->base = larger(a->base, smaller(least, most));
	a->period_at = now;
	a->seen = UNSEEN;
}

void delay_yield(struct aggregate *a, int64_t now)
{
	a->state = AGGREGATE_YIELD;
	a->limit = AGGREGATE_NONE;
	a->yield_for = a->yield_for > 0 ? smaller(2 * a->yield_for, PERIOD) : SOON;
	a->yield_until = now + (int64_t)a->yield_for;
	if (a->vain < THRICE)
		a->vain++;
	a->clear = 0;
}

/* Nobody else: the queue is ours, or there is none. */
static void alone(struct aggregate *a)
{
	a->vain = 0;
	a->yield_for = 0;
}

void delay_alone_again(struct aggregate *a, double bytes, int64_t now)
{
	alone(a);
	delay_bind(a, bytes, now);
}

/* The limit from before the experiment, which followed @wish. A long queue would wait for rounds. */
static double back_to(const struct aggregate *a, double wish)
{
	return (double)a->probe_from *
		(aggregate_is_exact(a) ? delay_wish(a) / wish : 1);
}

static void less_ends(struct aggregate *a, const struct aggregate_round *r,
		      int64_t now)
{
	double slack = delay_slack(a), least = r->least, wish = delay_wish(a);

	a->guessed = false;
	if (a->state == AGGREGATE_BOUND && least < a->base - 2 * slack) {
		/* The path is shorter than was known: and again. */
		aggregate_set_limit(a, r->held * (least + slack) / least, now);
	} else if (a->state == AGGREGATE_BOUND) {
		/* A little shorter: what is beyond luck is believed. */
		a->base = smaller(a->base, least + slack / 2);
		aggregate_set_limit(a, back_to(a, wish), now);
		renew(a, least, now);
	} else if (r->limited && r->held < a->before.held &&
		   (least <= delay_wish(a) || our_share(a, r) > SHARE)) {
		/* Ours. When all lose at once others' queue is gone as well. */
		a->limit = AGGREGATE_NONE;
		a->yield_for = 0;
		if (--a->vain)
			return;
		delay_alone_again(a, a->before.held * delay_wish(a) / a->before.rtt,
			    now);
	} else {
		delay_yield(a, now);
		renew(a, least, now);
	}
}

static void more_ends(struct aggregate *a, const struct aggregate_round *r,
		      int64_t now)
{
	a->limit = a->probe_from;
	/* No more was held, as there was less to send, or as pipes repaired. */
	if (!a->probe_tells || !r->limited || r->held <= a->before.held)
		return;
	if (our_share(a, r) >= SHARE) {
		/* So the path has become slower. */
		a->best = a->rate;
		alone(a);
		return;
	}
	/* More costs nothing: it is either others' queue or none. */
	aggregate_set_limit(a, larger(r->held, (double)a->limit), now);
	if (r->least <= delay_wish(a))
		return;
	a->vain_at = now;
	if (++a->vain < THRICE)
		return;
	a->yields++;
	delay_yield(a, now);
}

/*
 * Others come by little and little, and our rate falls; or they were there first,
 * and that the limit shrinks does not help. Who has asked in vain need not wait for that:
 * where a queue is long, so are rounds.
 */
static bool is_suspicious(const struct aggregate *a,
			  const struct aggregate_round *r, int64_t now)
{
	double queue = r->least - a->base, slack = delay_slack(a);

	if (!r->limited || queue <= slack)
		return false;
	if (queue <= 2 * slack)
		return a->rate < SHARE * a->best;
	if (a->vain && (double)(now - a->vain_at) > SOON)
		return true;
	return a->limit <= FLOOR_SEGMENTS * a->mss ||
		(is_less(r, &a->before) && our_share(a, r) < SHARE);
}

static bool probe(struct aggregate *a, enum aggregate_probe kind,
		  const struct aggregate_round *r, double part, int64_t now)
{
	a->probe = kind;
	a->probe_part = part;
	a->probe_tells = true;
	a->probe_from = a->limit;
	a->earlier = a->before;
	a->before = *r;
	aggregate_set_limit(a, part * r->held, now);
	return true;
}

/* By what part more has to be held, so that it tells. */
static double more(const struct aggregate *a, const struct aggregate_round *r)
{
	double ns = larger(NOISES * a->noise, 2 * delay_slack(a));

	return larger(larger(MORE, ns / r->rtt),
		      2 * (double)a->mss / r->held);
}

/* The start took single messages' word for the base. To wish for one segment it takes more. */
static bool is_uncertain(const struct aggregate *a)
{
	return a->guessed && aggregate_is_exact(a);
}

/* To what part less has to be held. */
static double less(const struct aggregate *a, const struct aggregate_round *r)
{
	return a->state == AGGREGATE_YIELD ? SHARE : LESS * a->base / r->least;
}

static bool is_clear(const struct aggregate *a, const struct aggregate_round *r)
{
	return NOISES * a->noise < r->rtt / 2;
}

/* What a path that carries little, or nothing now, holds is no matter of its limit. */
static bool may_join(const struct aggregate *a, enum aggregate_probe kind,
		     int64_t now)
{
	const struct aggregate_round *r = &a->before;

	if (a->state == AGGREGATE_FREE || a->probe || r->held <= 0)
		return false;
	if (a->state == AGGREGATE_YIELD && kind == PROBE_MORE)
		return false;
	return r->limited && !a->after_idle &&
	       (double)(now - a->asked_at) < r->rtt;
}

/*
 * By the same part: what all hold together changes by it, and so does a queue of theirs. But a path
 * that has nothing in common with the first is not to hold much more than it would ask itself, nor
 * less than it would.
 */
bool delay_joins(struct aggregate *a, const struct aggregate *first, int64_t now)
{
	struct aggregate_round r = a->before;
	double part = first->probe_part;
	bool tells = true;

	if (!may_join(a, first->probe, now))
		return false;
	if (first->probe == PROBE_MORE) {
		part = smaller(part, 1 + 2 * more(a, &r));
		tells = is_clear(a, &r) && part > 1 + more(a, &r) / 2;
	} else {
		part = larger(part, less(a, &r));
	}
	probe(a, first->probe, &r, part, now);
	a->probe_tells = tells;
	delay_begin_round(a, now);
	return true;
}

bool delay_probe_begins(struct aggregate *a, const struct aggregate_round *r,
			 int64_t now)
{
	double slack = delay_slack(a);

	if (now < a->probe_until)
		return false;
	if (a->state == AGGREGATE_YIELD)
		return now >= a->yield_until && r->least > delay_wish(a) &&
			probe(a, PROBE_LESS, r, less(a, r), now);
	a->best = larger(a->best, a->rate);
	if (r->least <= a->base + slack / 2)
		alone(a);
	/* First, as who has the base wrong suspects others all the time. */
	if (now - a->period_at > PERIOD || is_uncertain(a))
		return probe(a, PROBE_LESS, r, less(a, r), now);
	return is_suspicious(a, r, now) && is_clear(a, r) &&
		probe(a, PROBE_MORE, r, 1 + more(a, r), now);
}

void delay_probe_ends(struct aggregate *a, const struct aggregate_round *r,
		       int64_t now)
{
	if (a->probe == PROBE_LESS)
		less_ends(a, r, now);
	else
		more_ends(a, r, now);
	a->probe = PROBE_NONE;
	a->before.held = 0;
	a->before.rate = r->rate;
}

void delay_idles(struct aggregate *a, int64_t now)
{
	if (!a->probe)
		return;
	a->limit = a->probe_from;
	a->probe = PROBE_NONE;
	a->before.held = 0;
	delay_begin_round(a, now);
}
