/* SPDX-License-Identifier: MIT */
#include "cellular.h"

#include "mux/base/loop.h"

#define STEP (100 * NS_PER_MS)

/* So much does it change in a step, in these bounds; and so rare are gaps. */
#define WANDER 0.2
#define LOWEST 0.2
#define HIGHEST 2.0
#define NOTHING 0.02
enum { GAP_EVERY = 150, GAP_STEPS = 3 };

void cellular_make(struct cellular *t, double mean, struct random *r)
{
	unsigned int gap = 0;
	double part = 1;

	for (unsigned int i = 0; i < CELLULAR_STEPS; i++) {
		double by = WANDER * random_range(r, 0, 2000) / 1000;

		part *= random_below(r, 2) ? 1 + by : 1 / (1 + by);
		part = part < LOWEST ? LOWEST : part > HIGHEST ? HIGHEST : part;
		if (!gap && !random_below(r, GAP_EVERY))
			gap = random_range(r, 1, GAP_STEPS);
		t->rate[i] = mean * (gap ? NOTHING : part);
		gap -= gap > 0;
	}
}

double cellular_rate(const struct cellular *t, int64_t at)
{
	return t->rate[at / STEP % CELLULAR_STEPS];
}

double cellular_bytes(const struct cellular *t, int64_t from, int64_t to)
{
	double sum = 0;

	while (from < to) {
		int64_t end = (from / STEP + 1) * STEP;

		if (end > to)
			end = to;
		sum += (double)(end - from) / 1e9 * cellular_rate(t, from);
		from = end;
	}
	return sum;
}

int64_t cellular_after(const struct cellular *t, int64_t from, size_t len)
{
	double left = (double)len;

	for (;;) {
		int64_t end = (from / STEP + 1) * STEP;
		double can = (double)(end - from) / 1e9 * cellular_rate(t, from);

		if (can >= left)
			return from + (int64_t)(left / cellular_rate(t, from) *
						1e9) + 1;
		left -= can;
		from = end;
	}
}
