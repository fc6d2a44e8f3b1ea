/* SPDX-License-Identifier: MIT */
/* Virtual time: what is to happen, in order. */
#ifndef TM3_TEST_CLOCK_H
#define TM3_TEST_CLOCK_H

#include <stdint.h>

struct clock_event {
	int64_t at;
	uint64_t order;		/* of events at the same time */
	void (*happen)(void *who, const struct clock_event *e);
	void *who;
	uint64_t number;	/* two that are @who's to understand */
	int64_t when;
};

struct clock {
	int64_t now;
	uint64_t order;
	struct clock_event *heap;
	unsigned int events, room;
};

void clock_fini(struct clock *clock);
void clock_at(struct clock *clock, struct clock_event e);
/* Lets the next event happen. 0: there is none until @until. */
int clock_step(struct clock *clock, int64_t until);

#endif
