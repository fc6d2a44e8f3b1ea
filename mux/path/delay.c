/* SPDX-License-Identifier: MIT */
/*
 * The law for what the pipes may hold together: once a round the limit follows
 * the least round trip of the round. Docs/decisions/0010 has the equations.
 */
#include <string.h>

#include "../pipe/owed.h"
#include "delay_inside.h"

/*
 * So much queue is wished for: the time in which a process gets to run again,
 * or so many segments, as a receiver acknowledges two at once; and what changes
 * the round trip anyhow, or that would be taken for a queue. Where datagrams pass
 * and segments are far apart each of these is acknowledged (pipe/owed.h), and
 * the one that is being sent is enough.
 */
#define SLACK (4.0 * NS_PER_MS)
#define SLACK_SEGMENTS 3
#define SLACK_DATAGRAMS 1
#define SLACK_NOISE 1.25
#define SLACK_MAX (40.0 * NS_PER_MS)

/*
 * A round is a round trip, and then so much time that messages of at least half
 * a round trip tell: in between there may be more of them, or fewer. Rates are
 * those of so long, too.
 */
#define ROUND_MIN (10.0 * NS_PER_MS)

/*
 * Nothing was acknowledged for so long, and for so many round trips: the path was silent, or TCP
 * waited for its timer. A receiver alone delays an acknowledgement by up to 40 ms.
 */
#define SILENCE (100.0 * NS_PER_MS)
#define SILENCE_TRIPS 2

/* A queue that is there for so long, and for eight round trips, will stay. */
#define STANDS NS_PER_SEC

/* In a round the limit at most halves or doubles, and grows by ever more. */
#define STEP 2.0
#define GROW 1.25

/* Moving means take so much of what is new. */
#define PART (1.0 / 8)

static double segment_takes(const struct aggregate *a)
{
	return (double)a->mss / a->best * 1e9;
}

bool aggregate_is_exact(const struct aggregate *a)
{
	return a->datagrams && a->mode == AGGREGATE_DELAY && a->best > 0 &&
	       segment_takes(a) >= OWED_FAR_APART;
}

static double segments_take(const struct aggregate *a)
{
	return segment_takes(a) *
		(aggregate_is_exact(a) ? SLACK_DATAGRAMS : SLACK_SEGMENTS);
}

double delay_slack(const struct aggregate *a)
{
	double ns = larger(SLACK, SLACK_NOISE * a->noise);

	if (a->best > 0)
		ns = larger(ns, segments_take(a));
	return smaller(ns, SLACK_MAX);
}

/* The round trip that is wished for. */
double delay_wish(const struct aggregate *a)
{
	return a->base + delay_slack(a);
}

void delay_begin_round(struct aggregate *a, int64_t now)
{
	a->round_at = now < a->ramp_until ? a->ramp_until : now;
	a->heard = (struct aggregate_heard){ .least = UNSEEN };
	a->counted_at = 0;
}

void delay_init(struct aggregate *a, int64_t now)
{
	a->limit = AGGREGATE_FIRST;
	a->after_idle = true;
	a->idle_at = a->period_at = now;
	a->growth = 1;
	a->seen = UNSEEN;
	delay_begin_round(a, now);
}

void delay_bind(struct aggregate *a, double bytes, int64_t now)
{
	a->state = AGGREGATE_BOUND;
	a->growth = 1;
	a->before.held = 0;
	aggregate_set_limit(a, bytes, now);
}

/* --- BOUND: what a round changes --- */

/*
 * The limit so that the least round trip becomes what is wished for. One of few messages may be lucky,
 * and the limit that grows for it is segments more than a datagram can wait for: beside those
 * the path is empty when it was on average.
 */
static void follow(struct aggregate *a, const struct aggregate_round *r,
		   int64_t now)
{
	double slack = delay_slack(a), wish = delay_wish(a);
	double old = a->limit == AGGREGATE_NONE ? r->held : (double)a->limit;
	double bytes = r->held * wish / r->least;
	double least = aggregate_is_exact(a) ? r->rtt : r->least;
	bool empty = r->limited && least < a->base + slack / 2;

	if (r->least > wish) {
		a->growth = 1;
		/*
		 * Once, and a little, may be chance; and the burst behind an
		 * idle time is a queue for a moment, but of less than the limit.
		 */
		if ((r->limited || !a->before.limited) && bytes < old &&
		    (r->least > wish + 2 * slack || a->before.least > wish))
			aggregate_set_limit(a, larger(bytes, old / STEP), now);
		return;
	}
	if (empty)
		bytes = larger(bytes, old * a->growth);
	a->growth = empty ? smaller(a->growth * GROW, STEP) : 1;
	if (r->limited && bytes > old)
		aggregate_set_limit(a, smaller(bytes, old * STEP), now);
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
	a->noise += (larger(ns, r->rtt - r->least) - a->noise) * PART;
}

/*
 * Where round trips vary, the least of many is rare luck, and to wish for it all
 * the time would starve us: so it is come near by and by, but for a long step.
 */
static void mind_base(struct aggregate *a, double least)
{
	double below = a->base - least;

	if (below > 2 * delay_slack(a))
		a->base = least;
	else if (below > 0)
		a->base -= below * PART;
}

/* --- a round, and its end --- */

/*
 * What is outstanding is what the kernel takes for it, which may grow again: then
 * nothing was delivered.
 */
static double delivered_since(const struct aggregate_ack *ack, uint64_t before)
{
	return ack->delivered > before ? (double)(ack->delivered - before) : 0;
}

static struct aggregate_round round_of(struct aggregate *a,
				       const struct aggregate_ack *ack)
{
	const struct aggregate_heard *h = &a->heard;
	double took = (double)(ack->counted_at - a->counted_at);
	double bytes = delivered_since(ack, a->delivered);
	struct aggregate_round r = {
		.held = h->held / h->n,
		.rtt = h->clean ? h->rtt / h->clean : h->least,
		.least = h->least,
		.limited = 2 * h->limited > h->n,
		.rate = a->before.rate,
	};

	if (took >= ROUND_MIN && bytes > 0)
		r.rate = bytes * 1e9 / took;
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

	a->rounds++;
	a->seen = smaller(a->seen, r.least);
	if (!a->probe)
		mind_base(a, r.least);
	if (a->heard.clean >= ROUND_SAMPLES)
		mind_noise(a, &r);
	if (a->probe) {
		delay_probe_ends(a, &r, now);
		mind_base(a, r.least);
	} else if (!delay_probe_begins(a, &r, now)) {
		if (a->state == AGGREGATE_BOUND)
			follow(a, &r, now);
		else if (r.least > delay_wish(a))
			a->clear = 0;
		else if (++a->clear >= THRICE)
			delay_alone_again(a, a->rate * delay_wish(a) / 1e9, now);
		a->before = r;
	}
	delay_begin_round(a, now);
}

/* --- FREE: until a queue is seen --- */

static void no_queue_yet(struct aggregate *a)
{
	a->train_at = 0;
	a->best = 0;
	a->queued = 0;
	a->queued_at = 0;
}

static void begin_train(struct aggregate *a, const struct aggregate_ack *ack)
{
	a->train_at = ack->counted_at;
	a->train = ack->delivered;
}

/* A queue that is short on this path, but does not go. */
static bool stands(const struct aggregate *a, int64_t now)
{
	double since = (double)(now - a->queued_at);

	return a->queued_at && since > larger(STANDS, ROUND_SAMPLES * a->base);
}

/* The shortest round trip since there is a queue, and what was held then. */
static void mind_least(struct aggregate *a, const struct aggregate_ack *ack,
		       double rtt)
{
	if (a->train_at && rtt >= a->met.rtt)
		return;
	a->met.rtt = rtt;
	a->met.held = (double)ack->held;
}

/*
 * What tells the base may be the first run on an empty path. Of several segments the last waits for
 * the others, for as long as they take at the rate, which is known later.
 */
static void mind_first(struct aggregate *a, const struct aggregate_ack *ack,
		       double rtt)
{
	if (rtt >= a->base)
		return;
	a->alone = ack->len == ack->held && ack->len > ack->mss ?
		(double)ack->len : 0;
}

/*
 * A queue that cannot be what we held was there before us, or the path, of which @known is the
 * least, has become longer: to hold less would help against neither. A machine that stands still
 * just then is taken for it, too, until the first experiment.
 */
static bool was_there_before(const struct aggregate *a, double known)
{
	double ours = a->met.held * 1e9 / a->best + a->spread;

	return a->met.rtt - ours - known > larger(2 * SLACK_MAX, known / 2);
}

/* The kernel may know the path without a queue, from its handshakes. */
static void start_ends(struct aggregate *a, int64_t now)
{
	double known = a->expected > 0 ?
		smaller(a->base, (double)a->expected) : a->base;

	a->base = larger(a->base - a->alone * 1e9 / a->best, known);
	a->guessed = true;
	a->rate = a->best;
	a->noise = a->spread;
	if (was_there_before(a, known)) {
		a->base = known + a->spread;
		a->yields++;
		delay_yield(a, now);
	} else {
		a->base += a->spread;
		delay_bind(a, a->best * delay_wish(a) / 1e9, now);
	}
	/* It has been sent in bursts: a round trip spreads them. */
	delay_begin_round(a, now + (int64_t)a->base);
}

/*
 * As windows that open do, until messages meet a queue. Then what arrives as long
 * as there is one is the rate of the path. A page's bursts leave pauses in
 * which the bottleneck is not at work, though not every one is seen: so it
 * is measured piece by piece, and the fastest counts. The least of what messages met
 * is luck that a bulk does not have, and a base that is too long shrinks at once,
 * one that is too short grows by experiments alone.
 */
static void start(struct aggregate *a, const struct aggregate_ack *ack,
		  double rtt)
{
	double took = (double)(ack->counted_at - a->train_at);
	double bytes = delivered_since(ack, a->train), queue, seen;

	mind_first(a, ack, rtt);
	mind_base(a, rtt);
	queue = rtt - a->base;
	mind_least(a, ack, rtt);
	if (2 * ack->held > a->limit)
		aggregate_set_limit(a, 2 * (double)ack->held, a->ramp_at);
	if (queue < SLACK / 4) {
		no_queue_yet(a);
		return;
	}
	if (!a->train_at) {
		begin_train(a, ack);
	} else if (took >= ROUND_MIN && bytes > ROUND_SAMPLES * (double)a->mss) {
		a->best = larger(a->best, bytes * 1e9 / took);
		begin_train(a, ack);
	}
	seen = 2 * delay_slack(a);
	queue -= a->spread;
	if (queue < seen)
		a->queued_at = 0;
	else if (!a->queued_at && ack->more)
		a->queued_at = ack->acked_at;
	if (!stands(a, ack->acked_at))
		seen = larger(seen, a->base * PART);
	if (!ack->more || queue < seen)
		a->queued = 0;
	else if (++a->queued >= THRICE && a->best > 0)
		start_ends(a, ack->acked_at);
}

/* --- an acknowledgement --- */

/*
 * Sooner than any segment ever was, by more than makes no difference: on a short
 * path that is a part of it.
 */
static bool is_possible(const struct aggregate_ack *ack, double rtt)
{
	double least = (double)ack->least;

	return rtt > 0 && rtt >= least - smaller(SLACK, PART * least);
}

static bool was_limited(const struct aggregate *a, int64_t at)
{
	if (a->limit == AGGREGATE_NONE)
		return true;
	return at >= a->limited_from && (!a->limited_to || at <= a->limited_to);
}

/* Behind a hole a message tells when TCP filled it, not how long the path is. */
static void hear(struct aggregate *a, const struct aggregate_ack *ack,
		 double rtt)
{
	struct aggregate_heard *h = &a->heard;

	if (!h->n++)
		h->from = ack->acked_at;
	h->limited += was_limited(a, ack->sent_at);
	h->held += (double)ack->held;
	h->least = smaller(h->least, rtt);
	if (ack->again)
		return;
	h->clean++;
	h->rtt += rtt;
}

/*
 * That the path was empty is seen at once, in its sockets; stamps wait until they are read. So one
 * of what was sent before may come late, and tells nothing of what goes since.
 */
static void end_idle(struct aggregate *a, const struct aggregate_ack *ack)
{
	if (!a->after_idle || ack->sent_at < a->idle_at)
		return;
	if (a->state == AGGREGATE_FREE)
		a->limit = aggregate_limit(a, ack->acked_at);
	a->after_idle = false;
}

/*
 * The first of them would wait for rounds until the queue is as short as they need it. What is held
 * then counts acknowledgements that the other end delays, as it does no more beside datagrams: what
 * the rate needs does not. A round trip later both are as they will be.
 */
static void mind_datagrams(struct aggregate *a, bool pass, int64_t now)
{
	bool begin = pass && !a->datagrams;
	double wish = delay_wish(a), part;

	a->datagrams = pass;
	part = delay_wish(a) / wish;
	if (!begin || a->state != AGGREGATE_BOUND || a->probe || part >= 1)
		return;
	delay_bind(a, smaller((double)a->limit * part,
			      a->rate * delay_wish(a) / 1e9), now);
	delay_begin_round(a, now + (int64_t)a->base);
}

/* Since the last acknowledgement, or since it was sent, should that have been later. */
static int64_t silent_for(const struct aggregate *a,
			  const struct aggregate_ack *ack)
{
	int64_t from = ack->sent_at > a->heard_at ? ack->sent_at : a->heard_at;
	double least = SILENCE_TRIPS * larger(a->base, a->heard_rtt);
	int64_t lasted = ack->acked_at - from;

	if (!a->heard_at || !ack->again ||
	    (double)lasted < larger(SILENCE, least))
		return 0;
	return lasted;
}

/*
 * What was sent before a silence has ended tells when that ended, and how fast TCP repairs:
 * neither how long the path is, nor its rate. So what is heard of begins anew with what is sent
 * from then on, or when as much time has passed once more: a slow path in its start is taken for a
 * silent one, until round trips are as long as its acknowledgements are far apart. Returns whether the
 * acknowledgement is of before.
 */
static bool tells_of_silence(struct aggregate *a,
			     const struct aggregate_ack *ack, double rtt)
{
	int64_t lasted = silent_for(a, ack);

	if (lasted) {
		a->silent_to = ack->acked_at;
		a->repaired_at = ack->acked_at + lasted;
		delay_begin_round(a, ack->acked_at);
		if (a->state == AGGREGATE_FREE)
			no_queue_yet(a);
	}
	if (ack->acked_at > a->heard_at)
		a->heard_at = ack->acked_at;
	a->heard_rtt = rtt;
	return ack->sent_at < a->silent_to && ack->acked_at < a->repaired_at;
}

void delay_acked(struct aggregate *a, const struct aggregate_ack *ack)
{
	double rtt = (double)(ack->acked_at - ack->left_at), since;
	int64_t now = ack->acked_at;

	if (!is_possible(ack, rtt))
		return;
	a->mss = ack->mss;
	mind_datagrams(a, ack->datagrams, now);
	end_idle(a, ack);
	if (tells_of_silence(a, ack, rtt))
		return;
	if (a->state == AGGREGATE_FREE) {
		start(a, ack, rtt);
		return;
	}
	since = (double)(now - a->heard.from);
	/* Too few for long: those tell of another time. */
	if (!a->probe && a->heard.n && a->heard.n < ROUND_SAMPLES &&
	    since > larger(SOON, ROUND_SAMPLES * a->base))
		delay_begin_round(a, now);
	if (!a->counted_at) {
		a->counted_at = ack->counted_at;
		a->delivered = ack->delivered;
	}
	if (ack->sent_at < a->round_at)
		return;
	if (ack->more)
		hear(a, ack, rtt);
	if (a->heard.n >= ROUND_SAMPLES && (double)(now - a->heard.from) >=
	    larger(ROUND_MIN, a->base / 2) &&
	    (!a->probe || now >= a->probe_until))
		end_round(a, ack);
}
