/* SPDX-License-Identifier: MIT */
/*
 * The law for what the pipes may hold together: once a round the limit follows
 * the least round trip of the round. Docs/decisions/0010 has the equations.
 */
#include <string.h>

#include "aggregate_inside.h"

/*
 * So much queue is wished for: the time in which a process gets to run again,
 * or so many segments, as a receiver acknowledges two at once; and what changes
 * the round trip anyhow, or that would be taken for a queue.
 */
#define SLACK (4.0 * NS_PER_MS)
#define SLACK_SEGMENTS 3
#define SLACK_NOISE 1.25
#define SLACK_MAX (40.0 * NS_PER_MS)	/* a rate so low is what others leave us */

/*
 * A round is a round trip, and then so much time that messages of at least half
 * a round trip tell: in between there may be more of them, or fewer. Where no
 * stamps come none is waited for.
 */
#define ROUND_MIN (10.0 * NS_PER_MS)
#define ROUND_MAX (0.5 * NS_PER_SEC)
#define ROUND_TRIPS 8

/* In a round the limit at most halves, and grows by ever more up to twofold. */
#define SHRINK 0.5
#define GROW 1.25
#define GROW_MAX 2.0

/* Round trips and rates are those of so long to twice as long. */
#define PERIOD (10 * NS_PER_SEC)

/* FREE: so many messages in a row behind a queue are one, */
enum { QUEUED = 3 };
/* and so much must have arrived in so long to tell its rate. */
#define TRAIN_QUEUE (1.0 * NS_PER_MS)
#define TRAIN_TIME (10.0 * NS_PER_MS)
#define TRAIN_MAX (200.0 * NS_PER_MS)
enum { TRAIN_SEGMENTS = 8 };
/* What TCP repaired takes two round trips; what takes more met a queue, too. */
#define REPAIRED 2.5

/* A clock that is set while a message is under way, and the like. */
#define LEAST_PART 0.9

double delay_best(const struct aggregate *a)
{
	return larger(a->best_new, a->best_old);
}

double delay_slack(const struct aggregate *a)
{
	double best = delay_best(a), ns = larger(SLACK, SLACK_NOISE * a->noise);

	if (best > 0)
		ns = larger(ns, SLACK_SEGMENTS * (double)a->mss / best * 1e9);
	return smaller(ns, SLACK_MAX);
}

static void begin_round(struct aggregate *a, int64_t now)
{
	a->round_at = now < a->ramp_until ? a->ramp_until : now;
	a->clean = a->repaired = (struct aggregate_heard){ .least = UNSEEN };
	a->counted_at = 0;
	a->any = UNSEEN;
}

void delay_init(struct aggregate *a, int64_t now)
{
	a->limit = AGGREGATE_FIRST;
	a->rested = true;
	a->rest_at = a->period_at = now;
	a->growth = 1;
	begin_round(a, now);
}

void delay_bind(struct aggregate *a, double rate, int64_t now)
{
	a->state = AGGREGATE_BOUND;
	a->best_new = rate;
	a->best_old = 0;
	a->vain = 0;
	a->growth = 1;
	a->before.held = 0;
	aggregate_set_limit(a, rate * (base_of(a) + delay_slack(a)) / 1e9, now);
}

void delay_new_period(struct aggregate *a, int64_t now)
{
	if (a->base_new < UNSEEN)
		a->base_old = a->base_new;
	a->base_new = UNSEEN;
	a->best_old = a->best_new;
	a->best_new = 0;
	a->period_at = now;
}

/* --- rounds --- */

/* The limit so that the least round trip becomes what is wished for. */
static void follow(struct aggregate *a, const struct aggregate_round *r,
		   int64_t now)
{
	double slack = delay_slack(a), wish = base_of(a) + slack;
	double old = a->limit == AGGREGATE_NONE ? r->held : (double)a->limit;
	double bytes = r->held * wish / r->least;

	if (r->least > wish) {
		a->growth = 1;
		/* Once, and a little, may be chance. */
		if (bytes < old && (r->least > wish + 2 * slack ||
				    a->before.least > wish))
			aggregate_set_limit(a, larger(bytes, old * SHRINK), now);
		return;
	}
	if (!r->limited || r->least > base_of(a) + slack / 2 ||
	    a->repaired.n > a->clean.n)
		a->growth = 1;
	if (!r->limited)
		return;
	if (r->least < base_of(a) + slack / 2) {
		bytes = larger(bytes, old * a->growth);
		a->growth = smaller(a->growth * GROW, GROW_MAX);
	}
	if (bytes > old)
		aggregate_set_limit(a, smaller(bytes, old * GROW_MAX), now);
}

static double distance(double a, double b)
{
	return a > b ? a - b : b - a;
}

/*
 * What changes the round trip besides us: it is neither as before nor has it
 * followed what we hold; or it differs within the round.
 */
static void mind_noise(struct aggregate *a, const struct aggregate_round *r)
{
	double ns;

	if (a->before.held <= 0)
		return;
	ns = smaller(distance(r->rtt, a->before.rtt),
		     distance(r->rtt, a->before.rtt * r->held / a->before.held));
	a->noise += (larger(ns, r->rtt - r->least) - a->noise) / 8;
}

/*
 * Where round trips vary, the least of many is rare luck, and to wish for it all
 * the time would starve us: so it is come near by and by, but for a long step.
 */
static void mind_base(struct aggregate *a, double least)
{
	double below = a->base_new - least;

	if (a->base_new == UNSEEN)
		a->base_new = least;
	else if (below > 0)
		a->base_new -= below > 2 * delay_slack(a) ? below : below / 8;
}

/*
 * Behind a hole a message tells when TCP filled it, not how long the path is.
 * Where nearly all do, too much is lost to wait for others: the queue overflows.
 */
static struct aggregate_heard heard_in(const struct aggregate *a)
{
	struct aggregate_heard all = a->clean;

	if (all.n >= ROUND_SAMPLES || !a->repaired.n)
		return all;
	if (!all.n || a->repaired.from < all.from)
		all.from = a->repaired.from;
	all.n += a->repaired.n;
	all.limited += a->repaired.limited;
	all.held += a->repaired.held;
	all.rtt += a->repaired.rtt;
	all.least = smaller(all.least, a->repaired.least);
	return all;
}

static struct aggregate_round round_of(struct aggregate *a,
				       const struct aggregate_ack *ack)
{
	double took = (double)(ack->counted_at - a->counted_at);
	struct aggregate_heard all = heard_in(a);
	struct aggregate_round r = {
		.held = all.held / all.n,
		.rtt = all.rtt / all.n,
		.least = all.least,
		.limited = 2 * all.limited > all.n,
		.rate = a->before.rate,
	};

	if (took >= ROUND_MIN && ack->delivered > a->delivered)
		r.rate = (double)(ack->delivered - a->delivered) * 1e9 / took;
	/* Pauses in what is to be sent are not the path's rate. */
	if (!r.limited)
		r.rate = larger(r.rate, a->before.rate);
	/* One round in which this machine stood still tells too little. */
	a->rate = larger(r.rate, a->before.rate);
	return r;
}

static void end_round(struct aggregate *a, const struct aggregate_ack *ack)
{
	struct aggregate_round r = round_of(a, ack);
	int64_t now = ack->acked_at;
	double was = base_of(a);

	a->rounds++;
	mind_base(a, a->any);
	if (a->clean.n >= ROUND_SAMPLES)
		mind_noise(a, &r);
	if (a->probe) {
		probe_ends(a, &r, was, now);
		a->before.held = 0;
		a->before.rate = r.rate;
	} else if (!probe_begins(a, &r, now)) {
		if (a->state == AGGREGATE_BOUND)
			follow(a, &r, now);
		else if (r.least <= base_of(a) + delay_slack(a))
			delay_bind(a, a->rate, now);
		a->before = r;
	}
	begin_round(a, now);
}

/* --- FREE --- */

static void begin_train(struct aggregate *a, const struct aggregate_ack *ack)
{
	a->train_at = ack->counted_at;
	a->train = ack->delivered;
}

/*
 * As windows that open do, until messages meet a queue. Then what arrives as long
 * as there is one is the rate of the path. A page's bursts leave pauses in
 * which the bottleneck is not at work, though not every one is seen: so it
 * is measured piece by piece, and the fastest counts.
 */
static void start(struct aggregate *a, const struct aggregate_ack *ack,
		  double rtt)
{
	double took = (double)(ack->counted_at - a->train_at);
	double bytes = (double)(ack->delivered - a->train);
	double queue, base;

	a->base_new = smaller(a->base_new, rtt);
	base = base_of(a);
	queue = rtt - base;
	if (2 * ack->held > a->limit)
		aggregate_set_limit(a, 2 * (double)ack->held, a->ramp_at);
	if (queue < TRAIN_QUEUE) {
		a->train_at = 0;
		a->rate = 0;
		a->queued = 0;
		return;
	}
	if (!a->train_at || took > TRAIN_MAX) {
		begin_train(a, ack);
	} else if (took >= TRAIN_TIME && bytes > TRAIN_SEGMENTS * (double)a->mss) {
		a->rate = larger(a->rate, bytes * 1e9 / took);
		begin_train(a, ack);
	}
	if (ack->again && rtt < REPAIRED * base)
		return;
	if (!ack->more || queue < base / 8 || queue < 2 * delay_slack(a))
		a->queued = 0;
	else if (++a->queued >= QUEUED && a->rate > 0) {
		delay_bind(a, a->rate, ack->acked_at);
		/* It has been sent in bursts: a round trip spreads them. */
		begin_round(a, ack->acked_at + (int64_t)base);
	}
}

/* --- messages --- */

/* What cannot be: sooner than any segment ever was, or not after it was sent. */
static bool is_possible(const struct aggregate_ack *ack)
{
	int64_t rtt = ack->acked_at - ack->left_at;

	return rtt > 0 && (double)rtt >= LEAST_PART * (double)ack->least;
}

/* So long ago the first one told something, and since then not enough did. */
static bool is_overdue(const struct aggregate *a, int64_t now)
{
	struct aggregate_heard all = heard_in(a);

	return all.n && (double)(now - all.from) >
		larger(ROUND_MAX, ROUND_TRIPS * base_of(a));
}

static void mind_time(struct aggregate *a, int64_t now)
{
	if (a->probe)
		return;
	if (now - a->period_at > 2 * PERIOD && a->state == AGGREGATE_BOUND)
		delay_new_period(a, now);
	if (is_overdue(a, now) && heard_in(a).n < ROUND_SAMPLES)
		begin_round(a, now);
}

static bool is_over(const struct aggregate *a, int64_t now)
{
	double base = base_of(a);

	if (is_overdue(a, now))
		return heard_in(a).n >= ROUND_SAMPLES;
	return a->clean.n >= ROUND_SAMPLES && (double)(now - a->clean.from) >=
		(base < 2 * ROUND_MIN ? ROUND_MIN : base / 2);
}

static bool was_limited(const struct aggregate *a, int64_t at)
{
	if (a->limit == AGGREGATE_NONE)
		return true;
	return at >= a->limited_from && (!a->limited_to || at <= a->limited_to);
}

static void hear(struct aggregate *a, struct aggregate_heard *what,
		 const struct aggregate_ack *ack, double rtt)
{
	if (!what->n++)
		what->from = ack->acked_at;
	what->limited += was_limited(a, ack->sent_at);
	what->held += (double)ack->held;
	what->rtt += rtt;
	what->least = smaller(what->least, rtt);
}

void delay_acked(struct aggregate *a, const struct aggregate_ack *ack)
{
	double rtt = (double)(ack->acked_at - ack->left_at);
	int64_t now = ack->acked_at;

	if (!is_possible(ack))
		return;
	a->mss = ack->mss;
	if (a->rested && a->state == AGGREGATE_FREE)
		a->limit = aggregate_limit(a, now);
	a->rested = false;
	if (a->state == AGGREGATE_FREE) {
		start(a, ack, rtt);
		return;
	}
	mind_time(a, now);
	if (!a->counted_at) {
		a->counted_at = ack->counted_at;
		a->delivered = ack->delivered;
	}
	if (ack->sent_at < a->round_at)
		return;
	if (!ack->again)
		a->any = smaller(a->any, rtt);
	if (ack->more)
		hear(a, ack->again ? &a->repaired : &a->clean, ack, rtt);
	if (is_over(a, now))
		end_round(a, ack);
}
