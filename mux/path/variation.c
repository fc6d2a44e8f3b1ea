/* SPDX-License-Identifier: MIT */
#include "variation.h"

/* Of the newest sample. */
#define WEIGHT 0.25

void variation_sample(struct variation *v, size_t in_flight, double seconds)
{
	size_t bin = in_flight / VARIATION_BIN;
	float *mean = &v->mean[bin < VARIATION_BINS ? bin : VARIATION_BINS - 1];
	double differs = seconds - (double)*mean;

	if (*mean <= 0) {
		*mean = (float)seconds;
		return;
	}
	*mean += (float)(WEIGHT * differs);
	v->deviation += WEIGHT * ((differs < 0 ? -differs : differs) -
				  v->deviation);
}
