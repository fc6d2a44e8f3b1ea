/* SPDX-License-Identifier: MIT */
/*
 * The rate of a cellular last mile by a seed: it wanders by its logarithm, with
 * moments of next to nothing, as between cells.
 */
#ifndef TM3_TEST_TRACE_H
#define TM3_TEST_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "random.h"

enum { TRACE_STEPS = 600 };

struct trace {
	double rate[TRACE_STEPS];	/* bytes a second; then again */
};

void model_trace_make(struct trace *t, double mean, struct random *r);

double model_trace_rate(const struct trace *t, int64_t at);
/* What passes between two times, and when @len bytes have passed. */
double model_trace_bytes(const struct trace *t, int64_t from, int64_t to);
int64_t model_trace_after(const struct trace *t, int64_t from, size_t len);

#endif
