/* SPDX-License-Identifier: MIT */
#include "estimate.h"

#include <math.h>
#include <stdlib.h>

static const double NEWEST = 0.25;		/* its share of the mean */
static const int64_t INTERVAL = 20 * NS_PER_MS;	/* of a measurement */
/* No report is older when it comes: see telemetry_ms in params.c. */
static const int64_t HISTORY = 600 * NS_PER_MS;

void estimate_fini(struct estimate *e)
{
	free(e->ring);
}

/* --- what was handed over --- */

static struct passed *nth(const struct estimate *e, uint32_t i)
{
	return &e->ring[(e->first + i) % e->room];
}

static void forget_until(struct estimate *e, int64_t at)
{
	while (e->n && nth(e, 0)->at <= at) {
		e->first = (e->first + 1) % e->room;
		e->n--;
	}
}

static bool grow(struct estimate *e)
{
	uint32_t room = e->room ? 2 * e->room : 64;
	struct passed *ring = malloc(room * sizeof(*ring));

	if (!ring)
		return false;
	for (uint32_t i = 0; i < e->n; i++)
		ring[i] = *nth(e, i);
	free(e->ring);
	e->ring = ring;
	e->room = room;
	e->first = 0;
	return true;
}

static void remember(struct estimate *e, uint32_t bytes, int64_t now)
{
	forget_until(e, now - HISTORY);
	if (e->n && nth(e, e->n - 1)->at == now) {
		nth(e, e->n - 1)->bytes += bytes;
		return;
	}
	/* Without memory its bytes count from the one before on. */
	if (e->n == e->room && !grow(e)) {
		if (e->n)
			nth(e, e->n - 1)->bytes += bytes;
		return;
	}
	*nth(e, e->n++) = (struct passed){ now, bytes };
}

/* --- (3.1) to (3.3) --- */

static double left(double bytes, double rate, int64_t ns)
{
	return fmax(0, bytes - rate * (double)ns);
}

double estimate_bytes(const struct estimate *e, int64_t now)
{
	return left(e->bytes, e->rate, now - e->at);
}

void estimate_pass(struct estimate *e, uint32_t bytes, int64_t now)
{
	e->bytes = estimate_bytes(e, now) + bytes;
	e->at = now;
	remember(e, bytes, now);
}

int64_t estimate_falls_to(const struct estimate *e, double bytes)
{
	double ns;

	if (e->bytes <= bytes)
		return e->at;
	if (e->rate <= 0)
		return NEVER;
	ns = ceil((e->bytes - bytes) / e->rate);
	return ns < 1e15 ? e->at + (int64_t)ns : NEVER;
}

/* --- the rate --- */

static void measure(struct estimate *e, const struct record *record)
{
	double rate;

	if (!record->level && !record->granted)
		return;
	e->sent += (double)(record->granted - record->padded);
	e->span += record->span;
	if (e->span < INTERVAL)
		return;
	rate = e->sent / (double)e->span;
	e->rate = e->has_rate ? NEWEST * rate + (1 - NEWEST) * e->rate : rate;
	e->has_rate = true;
	e->sent = 0;
	e->span = 0;
}

void estimate_forget_rate(struct estimate *e)
{
	e->rate = 0;
	e->has_rate = false;
	e->sent = 0;
	e->span = 0;
}

void estimate_hear(struct estimate *e, const struct record *record,
		   const struct report *report)
{
	double bytes = report_most(report, record->level);
	int64_t at = record->at;
	double before;

	forget_until(e, record->at);
	before = e->n ? e->bytes : estimate_bytes(e, record->at);
	measure(e, record);
	for (uint32_t i = 0; i < e->n; i++) {
		const struct passed *p = nth(e, i);

		bytes = left(bytes, e->rate, p->at - at) + p->bytes;
		at = p->at;
	}
	if (report_is_last(report, record->level))
		bytes = fmax(bytes, before);
	e->bytes = bytes;
	e->at = at;
}
