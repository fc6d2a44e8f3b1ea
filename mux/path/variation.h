/* SPDX-License-Identifier: MIT */
/*
 * By how much a path's one-way delays deviate from what is known of them. A delay depends on the
 * bytes in flight, so for each 10 KB of these there is a mean of its own; what a sample differs from
 * its mean goes into the deviation. Both are exponentially weighted, a quarter for the newest.
 *
 * What comes back takes half of the least round trip, so a sample is what is left of one.
 *
 * No sockets, no clock.
 */
#ifndef TM3_VARIATION_H
#define TM3_VARIATION_H

#include <stddef.h>

enum {
	VARIATION_BIN = 10000,	/* bytes */
	VARIATION_BINS = 128,	/* the last one has all that is more */
};

struct variation {
	double deviation;	/* s */
	float mean[VARIATION_BINS];	/* s; 0: none yet */
};

/* A one-way delay of @seconds, with so many bytes in flight. */
void variation_sample(struct variation *v, size_t in_flight, double seconds);

#endif
