/* SPDX-License-Identifier: MIT */
/*
 * For log lines about a state that may come and go a thousand times a second.
 */
#ifndef TM3_SELDOM_H
#define TM3_SELDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

enum { SELDOM_SECONDS = 10 };

/* Whether to log it: at most once in SELDOM_SECONDS. @said_at starts as 0. */
static inline bool seldom(int64_t *said_at, const struct loop *loop)
{
	int64_t now = loop_now(loop);

	if (*said_at && now - *said_at < SELDOM_SECONDS * NS_PER_SEC)
		return false;
	*said_at = now;
	return true;
}

#endif
