/* SPDX-License-Identifier: MIT */
/*
 * How far apart the pipes of a session are, on whichever paths.
 *
 * A pipe that stalls for a moment (its pacing, a busy core) while the others
 * run at a gigabyte a second would fill the receiver's reorder queue to its
 * limit. So the others wait for it a little, once. A pipe that is really
 * blocked is passed over then, until the receiver would have to reset what it
 * cannot buffer. Decision 0006 tells more.
 *
 * No sockets, no clock: reads struct pipe's figures, keeps its marks.
 */
#ifndef TM3_SPREAD_H
#define TM3_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pipe;

struct spread {
	uint64_t total;		/* bytes given to all pipes */
	int64_t since;		/* one pipe lags since then; 0: none does */
};

/* @p is a pipe of the session from here on, and behind no other. */
void spread_begins(const struct spread *s, struct pipe *p);

/* @p is about to be given @len bytes. */
void spread_gives(struct spread *s, struct pipe *p, size_t len);

/* Does one of @n pipes lag so far behind that the others should wait? */
bool spread_is_wide(struct spread *s, struct pipe *const *pipes,
		    unsigned int n, int64_t now);

#endif
