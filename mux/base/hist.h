/* SPDX-License-Identifier: MIT */
/*
 * A histogram of delays in µs on a logarithmic scale: an eighth of an octave a
 * bucket, so that a quantile read from it lies within a sixteenth of the true
 * one, from 1 µs to 67 s, in under 1 KB. Up to 15 µs it is exact.
 *
 * Its owner allocates it when the first delay other than 0 comes, which for
 * most connections is never; zeros counted until then are added at once.
 */
#ifndef TM3_HIST_H
#define TM3_HIST_H

#include <stdint.h>

enum {
	HIST_SUB = 8,			/* buckets an octave */
	HIST_OCTAVES = 26,		/* 2^26 µs are 67.1 s */
	/* 0 to 7, one each; then eight for each octave from 8 µs on. */
	HIST_BUCKETS = HIST_SUB + (HIST_OCTAVES - 3) * HIST_SUB,
};

/* What is longer counts as this long, except in `max`. */
#define HIST_LIMIT ((1 << HIST_OCTAVES) - 1)

struct hist {
	uint64_t zeros;
	int64_t max;			/* exact, however long */
	uint32_t bucket[HIST_BUCKETS];	/* stays at its top rather than wrap */
};

void hist_init(struct hist *h);

/* A negative delay (clocks!) counts as 0. */
void hist_add(struct hist *h, int64_t us);
void hist_add_zeros(struct hist *h, uint64_t n);

uint64_t hist_count(const struct hist *h);

/*
 * The smallest delay that a share of @q (0 to 1) of all do not exceed, in µs;
 * of an empty histogram 0. For @q = 1 it is exact.
 */
int64_t hist_quantile(const struct hist *h, double q);

#endif
