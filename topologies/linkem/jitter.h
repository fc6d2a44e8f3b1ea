/* SPDX-License-Identifier: MIT */
/*
 * How much later than the propagation delay a packet comes. With J = jitter_ms:
 * uniform in [-J, J]; normal with standard deviation J, cut at four of them;
 * exponential with mean J; pareto with mean J and shape 3, from 0 on, cut at
 * 100 J. The first two leave the mean delay as it is, the others add to it.
 */
#ifndef LINKEM_JITTER_H
#define LINKEM_JITTER_H

#include <stdint.h>

#include "rng.h"

enum jitter_dist {
	JITTER_UNIFORM,
	JITTER_NORMAL,
	JITTER_EXPONENTIAL,
	JITTER_PARETO,
};

/* The jitter of packet @index in ns; its size is @jitter_ns. */
int64_t jitter_of(enum jitter_dist dist, int64_t jitter_ns,
		  const struct rng *rng, uint64_t index);

#endif
