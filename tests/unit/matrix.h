/* SPDX-License-Identifier: MIT */
/*
 * What the law for the sum of the pipes is held to, path by path: a bulk,
 * from the start or later, and a small object now and then, in virtual time.
 */
#ifndef TM3_TEST_MATRIX_H
#define TM3_TEST_MATRIX_H

#include "miles.h"

struct matrix_case {
	char name[64];
	struct model_params is;
	unsigned int rivals;
	enum tcp_cc rival_cc;
	int64_t rivals_from, rivals_to;	/* or 0: always */
	double steps;		/* the rate is up to so many times as much, or 0 */
	double trace;		/* mean of a trace, bytes a second, or 0 */
	int64_t alone;		/* objects alone for so long before the bulk */
	int64_t lasts;
	uint64_t seed;
};

struct matrix_found {
	double idle_ms;		/* an object alone, median */
	double p50, p90, p95, p99;	/* ms more beside the bulk */
	double goodput;		/* share of the path's rate, */
	double of_off;		/* of what the same gets without a limit */
	double yield;		/* share of the time */
	uint64_t start_drops;	/* by the queue, in the first two seconds */
	double start_p95;	/* an object's in those, ms more */
	double wait99;		/* of the bulk's messages for those before them, ms; */
	double first_wait99;	/* of those that came in the first second */
};

struct matrix_found matrix_measure(const struct matrix_case *c,
				   enum aggregate_mode mode);

/* The cases that have names, by place; false: there are no more. */
bool matrix_named(unsigned int i, struct matrix_case *c);

/* One of all that can be, by its seed. */
struct matrix_case matrix_random(uint64_t seed);

/* The same beside rivals, who may come later and go, at up to 1 Gbit/s. */
struct matrix_case matrix_crowded(uint64_t seed);

#endif
