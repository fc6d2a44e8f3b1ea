/* SPDX-License-Identifier: MIT */
#include "rate.h"

#include "clock.h"

int64_t rate_send(struct rate *r, int64_t start, uint32_t bytes)
{
	uint64_t work;

	if (start > r->free_at) {
		r->free_at = start;
		r->rest = 0;
	}
	work = (uint64_t)bytes * 8 * NS_PER_S + r->rest;
	r->free_at += (int64_t)(work / r->bit_per_s);
	r->rest = work % r->bit_per_s;
	return r->free_at;
}
