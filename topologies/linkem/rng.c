/* SPDX-License-Identifier: MIT */
#include "rng.h"

enum { ROUNDS = 10 };

static const uint32_t MULTIPLY[2] = { 0xd2511f53, 0xcd9e8d57 };
static const uint32_t WEYL[2] = { 0x9e3779b9, 0xbb67ae85 };

void rng_philox(const uint32_t counter[4], const uint32_t key[2],
		uint32_t out[4])
{
	uint32_t c[4] = { counter[0], counter[1], counter[2], counter[3] };
	uint32_t k[2] = { key[0], key[1] };

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t p = (uint64_t)MULTIPLY[0] * c[0];
		uint64_t q = (uint64_t)MULTIPLY[1] * c[2];
		uint32_t c1 = c[1];

		c[0] = (uint32_t)(q >> 32) ^ c1 ^ k[0];
		c[1] = (uint32_t)q;
		c[2] = (uint32_t)(p >> 32) ^ c[3] ^ k[1];
		c[3] = (uint32_t)p;
		k[0] += WEYL[0];
		k[1] += WEYL[1];
	}
	for (int i = 0; i < 4; i++)
		out[i] = c[i];
}

double rng_uniform(const struct rng *r, enum rng_purpose purpose,
		   uint64_t index, uint32_t draw)
{
	const uint32_t key[2] = { (uint32_t)r->seed,
				  (uint32_t)(r->seed >> 32) };
	const uint32_t counter[4] = {
		(uint32_t)index, (uint32_t)(index >> 32),
		(uint32_t)purpose << 1 | (r->direction & 1), draw,
	};
	uint32_t out[4];
	uint64_t bits;

	rng_philox(counter, key, out);
	bits = ((uint64_t)out[1] << 32 | out[0]) >> 11;
	return (double)bits * 0x1p-53;
}
