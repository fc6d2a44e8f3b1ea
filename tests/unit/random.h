/* SPDX-License-Identifier: MIT */
/*
 * Chance that can be repeated. Each property starts its generator by
 * random_begin(), which says the seed; TM3_SEED=N gives the same run again.
 */
#ifndef TM3_TEST_RANDOM_H
#define TM3_TEST_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

/* From TM3_SEED, or else from the clock; printed with the property's name. */
void random_begin(struct random *r, const char *property);

uint64_t random_next(struct random *r);
uint32_t random_below(struct random *r, uint32_t n);	/* 0 to n - 1 */
uint32_t random_range(struct random *r, uint32_t low, uint32_t high);
void random_fill(struct random *r, void *buf, size_t n);

/* The numbers 0 to n - 1 in some order. */
void random_order(struct random *r, uint32_t *order, uint32_t n);

#endif
