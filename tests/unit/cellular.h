/* SPDX-License-Identifier: MIT */
/*
 * The rate of a cellular last mile by a seed: it wanders by its logarithm, with
 * moments of next to nothing, as between cells.
 */
#ifndef TM3_TEST_CELLULAR_H
#define TM3_TEST_CELLULAR_H

#include <stddef.h>
#include <stdint.h>

#include "random.h"

enum { CELLULAR_STEPS = 600 };

struct cellular {
	double rate[CELLULAR_STEPS];	/* bytes a second; then again */
};

void cellular_make(struct cellular *t, double mean, struct random *r);

double cellular_rate(const struct cellular *t, int64_t at);
/* What passes between two times, and when @len bytes have passed. */
double cellular_bytes(const struct cellular *t, int64_t from, int64_t to);
int64_t cellular_after(const struct cellular *t, int64_t from, size_t len);

#endif
