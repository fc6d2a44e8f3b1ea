/* SPDX-License-Identifier: MIT */
/*
 * What a connection has in order and its application does not take: the bytes, how it takes them, and
 * for how long that delayed others (session/pausing.c). It is made with the first byte that waits
 * and given back with the last; if it was ever full it stays, since the account of that goes on.
 */
#ifndef TM3_BACKLOG_H
#define TM3_BACKLOG_H

#include <stdint.h>
#include <sys/uio.h>

#include "../base/bytes.h"
#include "stall.h"

struct backlog {
	struct bytes bytes;	/* to be written to the socket */
	uint64_t taken;		/* bytes its application took, and when that */
	int64_t taken_at;	/* was seen to change; 0: never yet */
	int64_t step;		/* the longest it took to change */
	int64_t full_at;	/* above QUEUE_MAX since then, or was the last time; 0: never */
	struct stall stall;	/* it delays the others */
};

/*
 * Adds what @iov has behind its first @skip bytes; *@b is made if it is NULL. 0, or -ENOMEM when
 * not all was added.
 */
int backlog_add(struct backlog **b, const struct iovec *iov, int n, size_t skip);
/* Bytes were taken: it is given back if nothing waits, and nothing is to be remembered. */
void backlog_release(struct backlog **b);
void backlog_free(struct backlog **b);

#endif
