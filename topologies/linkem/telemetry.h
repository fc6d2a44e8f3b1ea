/* SPDX-License-Identifier: MIT */
/*
 * What the firmware tells the host of itself, and how late it comes: with each
 * report to the base station a record of the level reported and of the bytes
 * granted and padded since the last one. Records come in their order.
 */
#ifndef LINKEM_TELEMETRY_H
#define LINKEM_TELEMETRY_H

#include <stdint.h>

#include "clock.h"

/* More intervals than the longest delay has. */
enum { TELEMETRY_MAX = 1024 };

struct record {
	int64_t at;			/* when the report was made */
	int64_t span;			/* of time that it is about */
	uint32_t level;
	uint64_t granted, padded;	/* bytes in that time */
};

struct telemetry {
	int64_t delay;			/* below 0: nothing is told */
	struct record ring[TELEMETRY_MAX];
	int64_t due[TELEMETRY_MAX];
	uint32_t first, n;
};

void telemetry_tell(struct telemetry *t, const struct record *record);

/* When the oldest comes; NEVER if none is under way. */
int64_t telemetry_due(const struct telemetry *t);
struct record telemetry_take(struct telemetry *t);

#endif
