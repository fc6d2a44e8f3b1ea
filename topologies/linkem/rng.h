/* SPDX-License-Identifier: MIT */
/*
 * Chance by counter: a draw depends on (seed, direction, purpose, index, draw)
 * and on nothing that happened before, so the n-th packet of a direction meets
 * the same fate in every run, whatever came between and however often another
 * purpose was asked. The generator is Philox4x32-10 (Salmon et al., SC 2011):
 * the key is the seed, the counter is everything else.
 */
#ifndef LINKEM_RNG_H
#define LINKEM_RNG_H

#include <stdint.h>

enum rng_purpose {
	RNG_LOSS,
	RNG_JITTER,
	RNG_DUPLICATE,
	RNG_REORDER,
	RNG_STATE,		/* which state Gilbert-Elliott goes to */
};

struct rng {
	uint64_t seed;
	uint32_t direction;
};

/* The raw generator, four words for a counter and a key. */
void rng_philox(const uint32_t counter[4], const uint32_t key[2],
		uint32_t out[4]);

/* Uniform in [0, 1), of 53 bits; @draw tells several of a purpose apart. */
double rng_uniform(const struct rng *r, enum rng_purpose purpose,
		   uint64_t index, uint32_t draw);

#endif
