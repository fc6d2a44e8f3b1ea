/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "aggregate_inside.h"

/* The slack: the larger of so many segments and so much time. */
enum { SLACK_SEGMENTS = 3 };
#define SLACK_NS (4 * NS_PER_MS)
#define SLACK_MAX (40 * NS_PER_MS)

/* Without a limit, one in so many bytes reports, at least. */
#define FREE_SPACING 6000.0

/* With one, so many reports of what it lets out, at least. */
enum { REPORTS = 4 };

/*
 * So many bytes at first, or after a rest: the first windows of some 16 pipes.
 * In one burst they would be too much for many a queue. So a part of them goes
 * at once, one and a half times as much in a round trip, or at this pace where
 * that is more. On a short path acknowledgements are sooner than any pace.
 */
#define FREE_FIRST (size_t)(160 * 1448)
#define FREE_BURST (size_t)(40 * 1448)
#define FREE_TRIP 1.5
#define FREE_PACE (1448.0 / NS_PER_MS)
#define FREE_SHORT (10 * NS_PER_MS)
#define FREE_REST NS_PER_SEC

/* Nobody needs more: no limit from here on. */
#define FREE_MAX (size_t)(8 << 20)

/* An empty path is asked for its round trip this often. */
#define EMPTY_SPACING (10 * NS_PER_MS)

/* A round: a round trip, then so many messages and so much time. */
enum { ROUND_SAMPLES = 8 };
#define ROUND_MIN (10 * NS_PER_MS)
#define ROUND_MAX (2 * NS_PER_SEC)

/* base is the smallest of so long to twice as long. */
#define PERIOD (10 * NS_PER_SEC)
#define DIP 0.7

/* So much at most may the limit shrink and grow in a round. */
#define FIRST 1.25
#define SHRINK 0.5
#define EASE 0.9
#define GROW 1.25

/* So many messages in a row behind a queue are no burst that passes. */
enum { LEAPS = 3 };

/* A limit that was not in the way for so long is out of date. */
#define STALE (10 * NS_PER_SEC)

void aggregate_init(struct aggregate *a, enum aggregate_mode mode,
		    double lambda, int64_t now)
{
	memset(a, 0, sizeof(*a));
	a->mode = mode;
	a->lambda = lambda;
	a->limit = mode == AGGREGATE_DELAY ? FREE_FIRST : AGGREGATE_NONE;
	a->base_new = a->base_old = INT64_MAX;
	a->period_at = a->round_at = now;
	a->least = INT64_MAX;
	others_forget(a);
	a->fresh_at = now;
	a->fresh = mode == AGGREGATE_DELAY;
}

void aggregate_expect(struct aggregate *a, int64_t rtt)
{
	if (a->base_new == INT64_MAX && a->base_old == INT64_MAX)
		a->expected = rtt;
}

/* Of the first flight. */
static size_t paced(const struct aggregate *a, int64_t now)
{
	int64_t trip = path_base(a) == INT64_MAX ? a->expected : path_base(a);
	double since = (double)(now - a->fresh_at), pace;

	if (trip < FREE_SHORT || since >= (double)trip * 2)
		return FREE_FIRST;
	pace = FREE_TRIP * (double)FREE_BURST / (double)trip;
	if (pace < FREE_PACE)
		pace = FREE_PACE;
	return FREE_BURST + (size_t)(since * pace);
}

static size_t limit_now(const struct aggregate *a, int64_t now)
{
	size_t first;

	if (!a->fresh || a->state != AGGREGATE_FREE)
		return a->limit;
	first = paced(a, now);
	return first < a->limit ? first : a->limit;
}

size_t aggregate_room(const struct aggregate *a, size_t held, int64_t now)
{
	size_t limit = limit_now(a, now);

	return held < limit ? limit - held : 0;
}

void aggregate_refused(struct aggregate *a, int64_t now)
{
	a->limited = true;
	a->refusals++;
	a->limited_at = now;
}

static int64_t slack_at(double rate, size_t mss)
{
	double segments = rate > 0 ?
		SLACK_SEGMENTS * (double)mss / rate * 1e9 : 0;

	/* A rate so low is more likely what others leave us. */
	if (segments > SLACK_MAX)
		return SLACK_MAX;
	return segments > SLACK_NS ? (int64_t)segments : SLACK_NS;
}

int64_t aggregate_slack(const struct aggregate *a, size_t mss)
{
	return slack_at(a->rate, mss);
}

static void begin_round(struct aggregate *a, int64_t now)
{
	a->round_at = now;
	a->samples = 0;
	a->least = INT64_MAX;
	a->most = 0;
	a->limited = false;
	a->old = true;
	if (a->state == AGGREGATE_BOUND)
		a->train_at = a->delivery = 0;
}

static void set_limit(struct aggregate *a, double bytes, size_t mss)
{
	double least = (double)(FLOOR_SEGMENTS * mss);

	a->limit = (size_t)(bytes > least ? bytes : least);
}

void aggregate_bind(struct aggregate *a, int64_t now, size_t mss)
{
	a->state = AGGREGATE_BOUND;
	a->in_vain = a->short_of = 0;
	a->limit_before = 0;
	a->calm_since = 0;
	a->limited_at = now;
	if (a->rate > a->best_new)
		a->best_new = a->rate;
	set_limit(a, a->rate * (double)(path_base(a) +
					aggregate_slack(a, mss)) / 1e9, mss);
}

/* Rather too much for a round, which tells the rate, than long too little. */
static void bind_at_first(struct aggregate *a, int64_t now, size_t mss)
{
	aggregate_bind(a, now, mss);
	set_limit(a, (double)a->limit * FIRST, mss);
}

/*
 * Windows that open twofold fill a queue within one round. As soon as its rate
 * is known, do not wait for the end. (That of the last round may be of a few
 * small objects, and far too low.)
 */
static bool overflows(struct aggregate *a, int64_t rtt, size_t mss,
		      bool more)
{
	int64_t queue = rtt - path_base(a);

	if (a->state != AGGREGATE_FREE || !more || queue <= path_base(a) / 8 ||
	    queue <= 2 * slack_at(a->delivery, mss))
		a->leaps = 0;
	else
		a->leaps++;
	return a->leaps >= LEAPS && a->delivery > 0;
}

static void set_free(struct aggregate *a)
{
	a->state = AGGREGATE_FREE;
	a->limit = FREE_FIRST;
	a->dipping = false;
}

/* As windows do that are open, twofold in a round trip. */
static void grow_free(struct aggregate *a, size_t held)
{
	if (a->state != AGGREGATE_FREE || 2 * held <= a->limit)
		return;
	a->limit = 2 * held < FREE_MAX ? 2 * held : AGGREGATE_NONE;
}

/*
 * What the limit should be, met by everybody and yet with no queue: first what
 * a queue as wished takes, then more and more, for the rate has grown.
 */
static double raised(struct aggregate *a, double old, int64_t lacking)
{
	static const double grow[] = { 1, GROW, 1.5, 2 };
	double bytes = old + a->rate * (double)lacking / 1e9;
	double leap = old * grow[a->short_of];

	if (a->short_of < sizeof(grow) / sizeof(grow[0]) - 1)
		a->short_of++;
	return bytes > leap ? bytes : leap;
}

static void follow(struct aggregate *a, int64_t queue, int64_t now, size_t mss)
{
	int64_t wish = aggregate_slack(a, mss);
	double old = (double)a->limit;
	double bytes = a->rate * (double)(path_base(a) + wish) / 1e9;

	others_mind_calm(a, queue <= 2 * wish, now);
	if (!a->limited || queue >= wish / 2)
		a->short_of = 0;
	if (queue > wish) {
		if (bytes > old)
			return;
		if (bytes < old * SHRINK)
			bytes = old * SHRINK;
	} else if (!a->limited) {
		return;
	} else if (queue < wish / 2) {
		double more = raised(a, old, wish - queue);

		bytes = bytes > more ? bytes : more;
		if (bytes > old * 2)
			bytes = old * 2;
	} else if (bytes < old * EASE && wish <= SLACK_NS) {
		/* On fast paths many come at once; least is the first's. */
		bytes = old * EASE;
	} else if (bytes < old) {
		return;
	}
	set_limit(a, bytes, mss);
}

static void end_round(struct aggregate *a, int64_t now, size_t mss, bool more)
{
	int64_t queue = a->least - path_base(a);
	int64_t wish;

	rate_set(a);
	if (a->state == AGGREGATE_BOUND && a->most > a->best_new)
		a->best_new = a->most;
	a->rounds++;
	wish = aggregate_slack(a, mss);
	switch (a->state) {
	case AGGREGATE_FREE:
		if (more && queue > wish && queue > path_base(a) / 8 &&
		    a->delivery > 0)
			bind_at_first(a, now, mss);
		break;
	case AGGREGATE_YIELD:
		if (more && now >= a->yield_until)
			others_may_be_gone(a, now, mss);
		break;
	case AGGREGATE_BOUND:
		if (others_stay(a, queue, mss)) {
			others_take_it(a, now);
			break;
		}
		a->limit_before = a->limit;
		if (now - a->limited_at > STALE)
			set_free(a);
		else
			follow(a, queue, now, mss);
		break;
	}
	a->least_before = a->least;
	begin_round(a, now);
}

static void dip(struct aggregate *a, int64_t now, size_t mss)
{
	a->dipping = true;
	a->dip_from = path_base(a);
	set_limit(a, (double)a->limit * DIP, mss);
	begin_round(a, now);
}

/*
 * With the limit always met there is always a little queue: base would creep
 * up. So every period ends in a dip of a round, in which there is none. Where
 * the round trip became shorter by it there may be more of a queue: so another.
 */
static void mind_period(struct aggregate *a, int64_t now, size_t mss)
{
	if (now - a->period_at < PERIOD)
		return;
	if (!a->dipping && a->state == AGGREGATE_BOUND) {
		dip(a, now, mss);
		return;
	}
	if (a->dipping && a->samples < ROUND_SAMPLES &&
	    now - a->round_at < ROUND_MAX)
		return;
	if (a->dipping) {
		a->dipping = false;
		set_limit(a, (double)a->limit / DIP, mss);
		if (path_base(a) + aggregate_slack(a, mss) / 2 < a->dip_from) {
			aggregate_bind(a, now, mss);
			dip(a, now, mss);
			return;
		}
		begin_round(a, now);
	}
	a->best_old = a->best_new;
	a->best_new = 0;
	a->base_old = a->base_new;
	a->base_new = INT64_MAX;
	a->period_at = now;
}

void aggregate_acked(struct aggregate *a, const struct aggregate_ack *ack)
{
	int64_t rtt = ack->acked_at - ack->left_at;
	int64_t now = ack->acked_at;
	if (a->mode != AGGREGATE_DELAY || rtt <= 0)
		return;
	a->latest = (double)ack->held * 1e9 / (double)rtt;
	a->limit = limit_now(a, now);
	a->fresh = false;
	grow_free(a, ack->held);
	if (rtt < a->base_new)
		a->base_new = rtt;
	if (now - a->round_at > ROUND_MAX && a->samples < ROUND_SAMPLES &&
	    !a->dipping)
		begin_round(a, now);
	if (ack->sent_at >= a->round_at) {
		a->samples++;
		if (rtt < a->least)
			a->least = rtt;
		if (a->latest > a->most)
			a->most = a->latest;
	}
	rate_mind_delivery(a, ack, rtt);
	if (others_are_met(a, ack, rtt)) {
		others_take_it(a, now);
		begin_round(a, now);
		return;
	}
	if (overflows(a, rtt, ack->mss, ack->more)) {
		a->leaps = 0;
		rate_set(a);
		bind_at_first(a, now, ack->mss);
		begin_round(a, now);
		return;
	}
	mind_period(a, now, ack->mss);
	if (a->samples >= ROUND_SAMPLES && now - a->round_at >= ROUND_MIN &&
	    !a->dipping)
		end_round(a, now, ack->mss, ack->more);
}

void aggregate_windows(struct aggregate *a, double cwnd, double rttmin,
		       double rtt, size_t mss)
{
	if (a->mode != AGGREGATE_DSWA || rtt <= 0 || rttmin <= 0)
		return;
	a->rate = cwnd / rtt;
	set_limit(a, a->lambda * rttmin / rtt * cwnd, mss);
}

bool aggregate_asks(struct aggregate *a, uint64_t written, size_t held,
		    int64_t now)
{
	double spacing = a->rate / 1e3;

	if (a->mode == AGGREGATE_OFF)
		return false;
	if (a->state != AGGREGATE_BOUND)
		spacing = 2 * spacing > FREE_SPACING ?
			2 * spacing : FREE_SPACING;
	/* Who waits for room waits for one of these. */
	if (spacing > (double)a->limit / REPORTS)
		spacing = (double)a->limit / REPORTS;
	if ((double)(written - a->asked) < spacing &&
	    (held || now - a->asked_at < EMPTY_SPACING))
		return false;
	if (!held && now - a->asked_at > FREE_REST &&
	    a->state == AGGREGATE_FREE && a->mode == AGGREGATE_DELAY) {
		a->limit = FREE_FIRST;
		a->fresh_at = now;
		a->fresh = true;
	}
	a->asked = written;
	a->asked_at = now;
	return true;
}

int64_t aggregate_base(const struct aggregate *a)
{
	int64_t least = path_base(a);

	return least == INT64_MAX ? 0 : least;
}

const char *aggregate_state_name(enum aggregate_state state)
{
	static const char *const names[] = {
		[AGGREGATE_FREE] = "free",
		[AGGREGATE_BOUND] = "bound",
		[AGGREGATE_YIELD] = "yield",
	};

	return names[state];
}

static const char *const mode_names[] = {
	[AGGREGATE_DELAY] = "delay",
	[AGGREGATE_DSWA] = "dswa",
	[AGGREGATE_OFF] = "off",
};

const char *aggregate_mode_name(enum aggregate_mode mode)
{
	return (size_t)mode < sizeof(mode_names) / sizeof(mode_names[0]) ?
		mode_names[mode] : NULL;
}
