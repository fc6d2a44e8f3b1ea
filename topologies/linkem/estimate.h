/* SPDX-License-Identifier: MIT */
/*
 * How much waits in the firmware, as the host can know it: from a report that
 * is old by the time it comes, what the host has handed over since, and the
 * rate predicted for that time. As published ("QCUT", equations 3.1 to 3.3),
 * with packets i of size S_i handed over at t_i after a report S_0 of t_0:
 *
 *   B(now)   = B(t_n) - S_TX(n)                           (3.1, 3.2)
 *   B(t_i+1) = B(t_i) + S_i+1 - S_TX(i)                   (3.2)
 *   S_TX(i)  = min(B(t_i), R (t_i+1 - t_i))               (3.3)
 *
 * R is what grants carried, padding left out, in intervals of 20 ms, of which
 * an exponential mean gives the newest a quarter. Three rules are ours. The
 * first interval is the first prediction. A record that reports nothing and
 * tells of no grant is no measurement, for nothing was asked for. The last
 * level says "the cap or more", so it does not lower an estimate above the
 * cap.
 */
#ifndef LINKEM_ESTIMATE_H
#define LINKEM_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "report.h"
#include "telemetry.h"

struct passed {
	int64_t at;
	uint32_t bytes;
};

struct estimate {
	double bytes;			/* B(t_n) */
	int64_t at;			/* t_n */
	double rate;			/* R, bytes each ns */
	bool has_rate;
	double sent;			/* in the present interval of R */
	int64_t span;			/* of it so far, ns */
	struct passed *ring;		/* since the newest report; owned */
	uint32_t first, n, room;
};

void estimate_fini(struct estimate *e);

/* The host hands @bytes over to the firmware. */
void estimate_pass(struct estimate *e, uint32_t bytes, int64_t now);

void estimate_hear(struct estimate *e, const struct record *record,
		   const struct report *report);

double estimate_bytes(const struct estimate *e, int64_t now);

/* When that falls to @bytes if nothing is added; NEVER if it will not. */
int64_t estimate_falls_to(const struct estimate *e, double bytes);

/* The rate goes back to being unknown. */
void estimate_forget_rate(struct estimate *e);

#endif
