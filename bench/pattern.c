// SPDX-License-Identifier: MIT
#include <string.h>

#include "load.h"

static uint8_t pattern[PATTERN_PERIOD + PATTERN_CHUNK];

void pattern_init(void)
{
	uint32_t x = 2463534242u;
	size_t i;

	for (i = 0; i < PATTERN_PERIOD; i++) {
		x ^= x << 13;	/* xorshift32 */
		x ^= x >> 17;
		x ^= x << 5;
		pattern[i] = (uint8_t)x;
	}
	for (; i < sizeof(pattern); i++)
		pattern[i] = pattern[i - PATTERN_PERIOD];
}

const uint8_t *pattern_at(uint64_t offset)
{
	return pattern + offset % PATTERN_PERIOD;
}

size_t pattern_match(const uint8_t *buf, size_t len, uint64_t offset)
{
	const uint8_t *want = pattern_at(offset);
	size_t i;

	if (memcmp(buf, want, len) == 0)
		return len;
	for (i = 0; buf[i] == want[i]; i++)
		;
	return i;
}
