/* SPDX-License-Identifier: MIT */
/*
 * The base station of a radio link. At fixed moments it is told how much waits
 * in the firmware, and allows as much of it to be sent as it has not allowed
 * yet and the link carries until the next such moment. A grant takes effect
 * `delay` later; what it allows beyond what is there then is padding.
 *
 * The moments are a grid that begins when the link does. Those at which
 * nothing could happen are left out by whoever runs it.
 */
#ifndef LINKEM_GRANTS_H
#define LINKEM_GRANTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "clock.h"

/* Written EVERYms,delay=DELAYms or none. */
struct grants_spec {
	double every_ms;	/* 0: none */
	double delay_ms;
};

/* Of a delay: most intervals, so most grants under way at a time. */
enum { GRANTS_MAX = 1024 };

struct grant {
	int64_t due;
	uint64_t bytes;
};

struct grants {
	int64_t every, delay;
	int64_t base;			/* a moment of the grid */
	struct grant ring[GRANTS_MAX];	/* under way, oldest first */
	uint32_t first, n;
	uint64_t under_way;		/* bytes of these */
	uint64_t rest;			/* of a byte, in units of 1 / 8e9 */
	uint64_t given;			/* grants so far */
	uint64_t granted, padded;	/* bytes of those that took effect */
};

int grants_parse(struct grants_spec *spec, const char *text, char *why,
		 size_t why_len);
void grants_print(const struct grants_spec *spec, FILE *out);

/* From @now on; the grid begins here. What is under way stays so. */
void grants_configure(struct grants *g, const struct grants_spec *spec,
		      int64_t now);

/* The first moment of the grid after @now. */
int64_t grants_tick_after(const struct grants *g, int64_t now);

/* Of @reported bytes those that no grant under way covers. */
uint64_t grants_wanted(const struct grants *g, uint64_t reported);

/* What a link of that rate carries in an interval; fractions carry over. */
uint64_t grants_capacity(struct grants *g, uint64_t bit_per_s);

void grants_give(struct grants *g, uint64_t bytes, int64_t now);

/* When the oldest grant takes effect; NEVER if none is under way. */
int64_t grants_due(const struct grants *g);

/* Takes it. Its owner sends, and says how much of it was too much. */
uint64_t grants_take(struct grants *g);
void grants_pad(struct grants *g, uint64_t bytes);

/* Those under way will not take effect. */
void grants_forget(struct grants *g);

#endif
