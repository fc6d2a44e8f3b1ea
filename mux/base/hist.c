/* SPDX-License-Identifier: MIT */
#include "hist.h"

#include <string.h>

enum { SUB_BITS = 3 };	/* HIST_SUB as a power of two */

void hist_init(struct hist *h)
{
	memset(h, 0, sizeof(*h));
}

/* The octave of a value of 8 or more, counted from that of 8. */
static int octave_of(uint32_t v)
{
	return 31 - __builtin_clz(v) - SUB_BITS;
}

/* Within an octave the three bits behind the leading one choose. */
static int bucket_of(uint32_t v)
{
	int octave;

	if (v < HIST_SUB)
		return (int)v;
	octave = octave_of(v);
	return octave * HIST_SUB + (int)(v >> octave);
}

/* The value in the middle of a bucket. */
static int64_t middle(int bucket)
{
	int octave = bucket / HIST_SUB - 1;
	int64_t low;

	if (octave <= 0)
		return bucket;
	low = (int64_t)(bucket - octave * HIST_SUB) << octave;
	return low + ((1 << octave) - 1) / 2;
}

void hist_add(struct hist *h, int64_t us)
{
	uint32_t *bucket;

	if (us <= 0) {
		h->zeros++;
		return;
	}
	if (us > h->max)
		h->max = us;
	bucket = &h->bucket[bucket_of(us < HIST_LIMIT ? (uint32_t)us
						      : HIST_LIMIT)];
	if (*bucket != UINT32_MAX)
		++*bucket;
}

void hist_add_zeros(struct hist *h, uint64_t n)
{
	h->zeros += n;
}

uint64_t hist_count(const struct hist *h)
{
	uint64_t n = h->zeros;

	for (int i = 0; i < HIST_BUCKETS; i++)
		n += h->bucket[i];
	return n;
}

/* ceil(q n), at least 1; what q's last binary digit adds is not a sample. */
static uint64_t rank_of(double q, uint64_t n)
{
	double exact = q * (double)n - 1e-6;
	uint64_t rank = exact > 0 ? (uint64_t)exact : 0;

	if ((double)rank < exact || rank == 0)
		rank++;
	return rank < n ? rank : n;
}

int64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t n = hist_count(h);
	uint64_t rank = rank_of(q, n);
	uint64_t below = h->zeros;

	if (rank == n)
		return h->max;
	for (int i = 0; below < rank; i++) {
		below += h->bucket[i];
		if (below >= rank)
			return middle(i) < h->max ? middle(i) : h->max;
	}
	return 0;
}
