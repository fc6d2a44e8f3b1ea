/* SPDX-License-Identifier: MIT */
/* A path whose limit is in the way, and what it hears of a round: numbers alone. */
#ifndef TM3_TEST_LIMITED_H
#define TM3_TEST_LIMITED_H

#include "miles.h"

enum { LIMIT = 67000 };

/* A limit that has been in the way for long, on a path of @base. */
static inline void begin_bound(struct aggregate *a, int64_t base, int64_t at)
{
	aggregate_init(a, AGGREGATE_DELAY, 0, 0);
	a->state = AGGREGATE_BOUND;
	a->after_idle = false;
	a->base = (double)base;
	a->limit = LIMIT;
	a->best = a->rate = 10 * MBIT;
	a->period_at = a->round_at = at;
	a->limited_from = at;
	a->limited_to = 0;
}

/* Messages of one round: what was held as each was sent, and how long it took. */
static inline void hear_a_round(struct aggregate *a, int64_t at, size_t held,
			 int64_t rtt)
{
	uint64_t rounds = a->rounds;

	for (int i = 0; a->rounds == rounds; i++) {
		struct aggregate_ack ack = {
			.sent_at = at + i * MS, .left_at = at + i * MS,
			.acked_at = at + i * MS + rtt,
			.counted_at = at + i * MS + rtt,
			.delivered = (uint64_t)i * 625, .held = held,
			.least = 60 * MS, .mss = 1448, .more = true,
		};

		assert_true(i < 1000);
		aggregate_acked(a, &ack);
	}
}

#endif
