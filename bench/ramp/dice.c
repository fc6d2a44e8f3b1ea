// SPDX-License-Identifier: MIT
#include <math.h>

#include "ramp.h"

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t dice_next(struct dice *d)
{
	uint64_t x = d->state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint32_t dice_below(struct dice *d, uint32_t limit)
{
	return (uint32_t)((dice_next(d) >> 32) * limit >> 32);
}

double dice_gap_ns(struct dice *d, double rate)
{
	double share = (double)((dice_next(d) >> 11) + 1) * 0x1p-53; /* 0 < share <= 1 */

	return -log(share) / rate * 1e9;
}
