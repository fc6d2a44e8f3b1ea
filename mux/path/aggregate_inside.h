/* SPDX-License-Identifier: MIT */
/* What the files of the aggregate limit share. */
#ifndef TM3_AGGREGATE_INSIDE_H
#define TM3_AGGREGATE_INSIDE_H

#include "../base/loop.h"
#include "aggregate.h"

/* What goes out first or after idle: the first windows of 16 pipes. */
#define AGGREGATE_FIRST (size_t)(160 * 1448)

/* The limit is never less: the bottleneck would run dry between two stamps. */
enum { FLOOR_SEGMENTS = 4 };

enum { ROUND_SAMPLES = 8 };	/* messages that a round hears of, at least */

#define UNSEEN 1e18	/* a round trip, ns: there was none yet */

static inline double larger(double a, double b)
{
	return a > b ? a : b;
}

static inline double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* The limit as it is let out at the moment. */
size_t aggregate_limit(const struct aggregate *a, int64_t now);

void aggregate_set_limit(struct aggregate *a, double bytes, int64_t now);

void delay_init(struct aggregate *a, int64_t now);
bool delay_joins(struct aggregate *a, const struct aggregate *first,
		 int64_t now);

/* There is nothing on the path: an experiment that was under way tells nothing. */
void delay_idles(struct aggregate *a, int64_t now);
void delay_acked(struct aggregate *a, const struct aggregate_ack *ack);

#endif
