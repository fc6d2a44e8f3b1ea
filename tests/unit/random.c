/* SPDX-License-Identifier: MIT */
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t seed(void)
{
	const char *given = getenv("TM3_SEED");
	struct timespec now;

	if (given)
		return strtoull(given, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	return ((uint64_t)now.tv_nsec << 20 ^ (uint64_t)now.tv_sec ^
		(uint64_t)getpid()) % 1000000000;
}

void random_begin(struct random *r, const char *property)
{
	r->state = seed();
	printf("%s: TM3_SEED=%llu\n", property, (unsigned long long)r->state);
	fflush(stdout);
}

/* splitmix64 */
uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

uint32_t random_below(struct random *r, uint32_t n)
{
	return (uint32_t)((random_next(r) >> 32) * n >> 32);
}

uint32_t random_range(struct random *r, uint32_t low, uint32_t high)
{
	return low + random_below(r, high - low + 1);
}

void random_fill(struct random *r, void *buf, size_t n)
{
	uint8_t *p = buf;

	while (n--)
		*p++ = (uint8_t)random_next(r);
}

void random_order(struct random *r, uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = random_below(r, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}
