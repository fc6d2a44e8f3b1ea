/* SPDX-License-Identifier: MIT */
#include "radio.h"

#include <math.h>
#include <string.h>

#include "clock.h"

/* --- when --- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t opens(const struct radio *r)
{
	return gate_opens(&r->gate, &r->estimate, firmware_bytes(&r->firmware));
}

int64_t radio_next(const struct radio *r, const struct radio_link *link)
{
	int64_t next = earlier(r->tick, grants_due(&r->grants));

	next = earlier(next, telemetry_due(&r->telemetry));
	if (link->waits(link->arg) && !firmware_is_full(&r->firmware)) {
		next = earlier(next, opens(r));
		next = earlier(next, gate_falls(&r->gate));
	}
	/* A gate may be open since before a packet came. */
	return next > r->clock ? next : r->clock;
}

/* Whether a report would tell of anything. */
static bool is_idle(const struct radio *r)
{
	return r->is_known_empty && !r->grants.n &&
	       !firmware_bytes(&r->firmware);
}

/* --- what happens at a moment --- */

static void send(struct radio *r, const struct radio_link *link, int64_t at)
{
	uint64_t bytes = grants_take(&r->grants);
	struct packet *p;

	while ((p = firmware_send(&r->firmware, &bytes))) {
		hist_add(&r->firmware_us, (at - p->passed) / 1000);
		link->sent(link->arg, p, at);
	}
	grants_pad(&r->grants, bytes);
	r->is_known_empty = false;
}

static void wake(struct radio *r, int64_t at)
{
	r->tick = grants_tick_after(&r->grants, at);
	r->told = r->tick - r->grants.every;
	gate_owed(&r->gate, at);
}

static void pass(struct radio *r, struct packet *p, int64_t at)
{
	hist_add(&r->host_us, (at - p->entered) / 1000);
	p->passed = at;
	firmware_push(&r->firmware, p);
	estimate_pass(&r->estimate, p->cost, at);
	r->is_known_empty = false;
	if (r->tick == NEVER)
		wake(r, at);
}

static void let_pass(struct radio *r, const struct radio_link *link, int64_t at)
{
	struct packet *p;

	r->gate.holds = false;
	while (link->waits(link->arg) && !firmware_is_full(&r->firmware)) {
		if (opens(r) > at) {
			r->gate.holds = true;
			return;
		}
		p = link->take(link->arg, at);
		if (p)
			pass(r, p, at);
	}
}

static void report(struct radio *r, const struct radio_link *link, int64_t at)
{
	uint32_t level = report_level(&r->report, firmware_bytes(&r->firmware));
	uint64_t wanted = grants_wanted(&r->grants,
					report_most(&r->report, level));
	const struct record record = {
		.at = at,
		.span = at - r->told,
		.level = level,
		.granted = r->grants.granted - r->granted,
		.padded = r->grants.padded - r->padded,
	};

	telemetry_tell(&r->telemetry, &record);
	r->told = at;
	r->granted = r->grants.granted;
	r->padded = r->grants.padded;
	r->is_known_empty = !level;
	if (wanted)
		grants_give(&r->grants, link->carries(link->arg, at, wanted),
			    at);
	r->tick = is_idle(r) ? NEVER : grants_tick_after(&r->grants, at);
}

static void hear(struct radio *r, int64_t at)
{
	const struct record record = telemetry_take(&r->telemetry);

	estimate_hear(&r->estimate, &record, &r->report);
	gate_heard(&r->gate, at);
}

static void fall_open(struct radio *r, const struct radio_link *link,
		      int64_t at)
{
	gate_fall(&r->gate);
	if (!r->said)
		link->fell_open(link->arg, at);
	r->said = true;
}

static void step(struct radio *r, const struct radio_link *link, int64_t at)
{
	while (grants_due(&r->grants) <= at)
		send(r, link, at);
	let_pass(r, link, at);
	if (r->tick <= at)
		report(r, link, at);
	while (telemetry_due(&r->telemetry) <= at)
		hear(r, at);
	if (gate_falls(&r->gate) <= at)
		fall_open(r, link, at);
	let_pass(r, link, at);
}

void radio_run(struct radio *r, const struct radio_link *link, int64_t now)
{
	int64_t next = radio_next(r, link);

	while (next <= now) {
		r->clock = next;
		step(r, link, next);
		next = radio_next(r, link);
	}
	r->clock = now;
}

/* --- parameters --- */

void radio_init(struct radio *r)
{
	memset(r, 0, sizeof(*r));
	r->tick = NEVER;
	r->is_known_empty = true;
	hist_init(&r->host_us);
	hist_init(&r->firmware_us);
}

void radio_fini(struct radio *r)
{
	estimate_fini(&r->estimate);
}

/* Nothing is under way any more. */
static void end(struct radio *r)
{
	estimate_fini(&r->estimate);
	memset(&r->estimate, 0, sizeof(r->estimate));
	grants_forget(&r->grants);
	r->firmware.head_sent = 0;
	r->telemetry.n = 0;
	r->tick = NEVER;
	r->is_known_empty = true;
	r->gate.holds = false;
}

void radio_configure(struct radio *r, const struct radio_spec *spec,
		     int64_t now)
{
	bool was_on = r->is_on;

	r->is_on = spec->grants.every_ms > 0;
	r->clock = now;
	if (was_on && !r->is_on)
		end(r);
	if (!r->is_on)
		return;
	r->gate.spec = spec->gate;
	r->gate.sees = spec->telemetry_ms == 0;
	r->firmware.room = (uint64_t)llround(spec->firmware_kb * 1e3);
	r->telemetry.delay = llround(spec->telemetry_ms * (double)NS_PER_MS);
	report_init(&r->report, &spec->report);
	grants_configure(&r->grants, &spec->grants, now);
	if (r->tick != NEVER)
		wake(r, now);
}

void radio_restart(struct radio *r, int64_t now)
{
	r->grants.base = now;
	r->grants.rest = 0;
	estimate_forget_rate(&r->estimate);
	hist_init(&r->host_us);
	hist_init(&r->firmware_us);
	if (r->tick != NEVER)
		wake(r, now);
}
