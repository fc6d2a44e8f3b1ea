/* SPDX-License-Identifier: MIT */
/* Time is int64_t nanoseconds of CLOCK_MONOTONIC; only the loop looks at it. */
#ifndef LINKEM_CLOCK_H
#define LINKEM_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NEVER INT64_MAX
#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL

static inline int64_t clock_read(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline int64_t clock_now(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

#endif
