/* SPDX-License-Identifier: MIT */
/* What the files of the aggregate limit share. */
#ifndef TM3_AGGREGATE_INSIDE_H
#define TM3_AGGREGATE_INSIDE_H

#include "../base/loop.h"
#include "aggregate.h"

enum { FLOOR_SEGMENTS = 4 };	/* the limit is never less */

/* The smallest round trip of late; INT64_MAX: there was none. */
static inline int64_t path_base(const struct aggregate *a)
{
	return a->base_new < a->base_old ? a->base_new : a->base_old;
}

/* So much queue is wished for, in time. */
int64_t aggregate_slack(const struct aggregate *a, size_t mss);

/* What arrived, at each message that was acknowledged. */
void rate_mind_delivery(struct aggregate *a, const struct aggregate_ack *ack,
			int64_t rtt);
/* At the end of a round. */
void rate_set(struct aggregate *a);

/* BOUND from here on, to the rate that is known. */
void aggregate_bind(struct aggregate *a, int64_t now, size_t mss);

/* Did the message that was acknowledged meet others' queue? */
bool others_are_met(struct aggregate *a, const struct aggregate_ack *ack,
		    int64_t rtt);
/* BOUND, at the end of a round that left such a @queue. */
bool others_stay(struct aggregate *a, int64_t queue, size_t mss);
/* YIELD: no limit for a while, */
void others_take_it(struct aggregate *a, int64_t now);
/* and what comes after it. */
void others_may_be_gone(struct aggregate *a, int64_t now, size_t mss);
/* Long enough without them, the next while is short again. */
void others_mind_calm(struct aggregate *a, bool calm, int64_t now);
void others_forget(struct aggregate *a);

#endif
