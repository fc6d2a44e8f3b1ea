/* SPDX-License-Identifier: MIT */
/* Cubic (RFC 9438) with HyStart's delay, and the first version of BBR, in short. */
#include <math.h>

#include "mux/base/loop.h"
#include "tcp.h"

#define CUBIC_C 0.4
#define CUBIC_BETA 0.7
enum { LEAST_WINDOW = 2, HYSTART_FROM = 16, HYSTART_SAMPLES = 8 };

/* --- cubic --- */

static void leave_slow_start(struct tcp *t, double rtt)
{
	double more = t->least / 8;

	if (t->first >= t->round) {
		t->round = t->next;
		t->round_samples = 0;
		t->round_least = 1e18;
	}
	if (rtt > 0 && ++t->round_samples <= HYSTART_SAMPLES &&
	    rtt < t->round_least)
		t->round_least = rtt;
	more = more < 4e6 ? 4e6 : more > 16e6 ? 16e6 : more;
	if (t->cwnd >= HYSTART_FROM && t->round_samples >= HYSTART_SAMPLES &&
	    t->round_least > t->least + more)
		t->ssthresh = t->cwnd;
}

static bool is_used(const struct tcp *t)
{
	return t->used || (t->cwnd < t->ssthresh && t->cwnd < 2 * t->most);
}

static void open_cubic(struct tcp *t, double acked)
{
	double since, target;

	if (!t->epoch) {
		t->epoch = t->clock->now;
		t->k = t->wmax > t->cwnd ? cbrt((t->wmax - t->cwnd) / CUBIC_C) : 0;
		if (t->wmax < t->cwnd)
			t->wmax = t->cwnd;
		t->friendly = t->cwnd;
	}
	since = ((double)(t->clock->now - t->epoch) + t->least) / 1e9;
	target = CUBIC_C * pow(since - t->k, 3) + t->wmax;
	target = fmin(fmax(target, t->cwnd), t->cwnd * 1.5);
	t->friendly += 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA) * acked / t->cwnd;
	t->cwnd += (target - t->cwnd) / t->cwnd * acked;
	if (t->cwnd < t->friendly)
		t->cwnd = t->friendly;
}

/* --- BBR --- */

static const double gains[] = { 1.25, 0.75, 1, 1, 1, 1, 1, 1 };

static double bbr_rate(const struct tcp *t)
{
	double most = 0;

	for (unsigned int i = 0; i < BBR_ROUNDS; i++)
		most = fmax(most, t->bbr.rates[i]);
	return most;
}

/* Bytes a second over the flight of @s; of what the window let out alone. */
static void bbr_take_rate(struct tcp *t, const struct tcp_segment *s)
{
	double took = (double)(t->clock->now - s->counted_at) / 1e9;
	double rate = took > 0 ? (double)(t->delivered - s->delivered) / took : 0;
	double *of_round = &t->bbr.rates[t->bbr.rounds % BBR_ROUNDS];

	if (took * 1e9 < t->least * 0.9 || (s->limited && rate < bbr_rate(t)))
		return;
	*of_round = fmax(*of_round, rate);
}

static void bbr_new_round(struct tcp *t, bool limited)
{
	struct tcp_bbr *b = &t->bbr;

	b->round_ends = t->delivered + t->flying;
	if (b->state == BBR_STARTUP && !limited) {
		b->slow = bbr_rate(t) < b->full * 1.25 ? b->slow + 1 : 0;
		b->full = fmax(b->full, bbr_rate(t));
		if (b->slow >= 3)
			b->state = BBR_DRAIN;
	}
	/* What the application did not fill tells nothing and ends nothing. */
	if (!limited)
		b->rates[++b->rounds % BBR_ROUNDS] = 0;
}

static void bbr_mind_least(struct tcp *t, double rtt)
{
	struct tcp_bbr *b = &t->bbr;
	int64_t now = t->clock->now;

	if (rtt > 0 && (rtt <= (double)b->least || !b->least ||
			b->state == BBR_LEAST)) {
		b->least = (int64_t)rtt;
		b->least_at = now;
	}
	if (b->state == BBR_PROBE && now - b->least_at > 10 * NS_PER_SEC) {
		b->state = BBR_LEAST;
		b->done_at = now + 200 * NS_PER_MS + b->least;
		b->least = 0;
	} else if (b->state == BBR_LEAST && now > b->done_at) {
		b->state = BBR_PROBE;
		b->least_at = now;
	}
}

static void open_bbr(struct tcp *t, size_t acked, double rtt,
		     const struct tcp_segment *newest)
{
	struct tcp_bbr *b = &t->bbr;
	double bdp, gain, target;

	bbr_take_rate(t, newest);
	bbr_mind_least(t, rtt);
	if (t->delivered >= b->round_ends)
		bbr_new_round(t, newest->limited);
	bdp = bbr_rate(t) * (double)b->least / 1e9;
	if (b->state == BBR_DRAIN && (double)t->flying <= bdp) {
		b->state = BBR_PROBE;
		b->least_at = t->clock->now;
	}
	if (b->state == BBR_PROBE && t->clock->now - b->phase_at > b->least) {
		b->phase = (b->phase + 1) % 8;
		b->phase_at = t->clock->now;
	}
	gain = b->state == BBR_STARTUP ? 2.89 : b->state == BBR_DRAIN ? 0.35 :
		b->state == BBR_LEAST ? 1 : gains[b->phase];
	b->pacing = gain * fmax(bbr_rate(t),
				4 * TCP_MSS / (t->srtt / 1e9));
	target = (b->state == BBR_STARTUP ? 2.89 : 2) * bdp / TCP_MSS;
	if (t->cwnd < target || b->state == BBR_STARTUP)
		t->cwnd += (double)acked / TCP_MSS;
	if (b->state != BBR_STARTUP)
		t->cwnd = fmin(t->cwnd, target);
	t->cwnd = b->state == BBR_LEAST ? 4 : fmax(t->cwnd, 4);
}

static void pace_again(void *who, const struct clock_event *e)
{
	struct tcp *t = who;

	(void)e;
	t->bbr.waits = false;
	tcp_push(t);
}

bool window_paces(struct tcp *t, size_t len)
{
	struct tcp_bbr *b = &t->bbr;

	if (t->cc != TCP_BBR || b->pacing <= 0)
		return true;
	if (b->next_at <= t->clock->now + NS_PER_MS) {
		if (b->next_at < t->clock->now)
			b->next_at = t->clock->now;
		b->next_at += (int64_t)((double)len / b->pacing * 1e9);
		return true;
	}
	if (!b->waits)
		clock_at(t->clock, (struct clock_event){ .at = b->next_at,
			 .happen = pace_again, .who = t });
	b->waits = true;
	return false;
}

/* --- either --- */

void window_opens(struct tcp *t, size_t acked, double rtt,
		  const struct tcp_segment *newest)
{
	if (t->cc == TCP_BBR) {
		open_bbr(t, acked, rtt, newest);
		return;
	}
	if (t->recovering && t->cwnd >= t->ssthresh)
		return;
	if (t->cwnd < t->ssthresh)
		leave_slow_start(t, rtt);
	if (!is_used(t))
		return;
	if (t->cwnd < t->ssthresh)
		t->cwnd += (double)acked / TCP_MSS;
	else
		open_cubic(t, (double)acked / TCP_MSS);
}

void window_shrinks(struct tcp *t)
{
	if (t->cc == TCP_BBR)
		return;
	t->wmax = t->cwnd < t->wmax ? t->cwnd * (1 + CUBIC_BETA) / 2 : t->cwnd;
	t->cwnd = t->ssthresh = fmax(t->cwnd * CUBIC_BETA, LEAST_WINDOW);
	t->epoch = 0;
}

void window_collapses(struct tcp *t)
{
	window_shrinks(t);
	t->cwnd = t->cc == TCP_BBR ? 4 : 1;
}
