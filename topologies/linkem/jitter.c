/* SPDX-License-Identifier: MIT */
#include "jitter.h"

#include <math.h>

/* Box and Muller's; 1 - u keeps the logarithm's argument off zero. */
static double normal(const struct rng *rng, uint64_t index)
{
	double u = 1 - rng_uniform(rng, RNG_JITTER, index, 0);
	double v = rng_uniform(rng, RNG_JITTER, index, 1);
	double z = sqrt(-2 * log(u)) * cos(2 * M_PI * v);

	return fmax(-4, fmin(4, z));
}

/* Lomax of shape 3: with scale 2 its mean is 1. */
static double pareto(double u)
{
	return fmin(100, 2 * (pow(1 - u, -1.0 / 3) - 1));
}

int64_t jitter_of(enum jitter_dist dist, int64_t jitter_ns,
		  const struct rng *rng, uint64_t index)
{
	double u = rng_uniform(rng, RNG_JITTER, index, 0);
	double x = 0;

	switch (dist) {
	case JITTER_UNIFORM:
		x = 2 * u - 1;
		break;
	case JITTER_NORMAL:
		x = normal(rng, index);
		break;
	case JITTER_EXPONENTIAL:
		x = -log(1 - u);
		break;
	case JITTER_PARETO:
		x = pareto(u);
		break;
	}
	return (int64_t)llround(x * (double)jitter_ns);
}
