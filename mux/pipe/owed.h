/* SPDX-License-Identifier: MIT */
/*
 * The acknowledgement that a pipe owes for what came. The kernel holds that of less than two
 * segments back for up to 40 ms. A pipe that is prompt asks for it in the same batch: of what is
 * less than a segment, and of each segment where datagrams pass and segments are far apart.
 */
#ifndef TM3_OWED_H
#define TM3_OWED_H

#include <stdbool.h>
#include <stddef.h>

#include "../base/loop.h"

struct pipe;

/*
 * Segments are far apart from here on: those of 4 Mbit/s. Faster ones are acknowledged two at
 * once, as acknowledgements take their part of the way back.
 */
#define OWED_FAR_APART (3 * NS_PER_MS)

/* What passes on a path, by the clock of the loop; 0: it never did. */
struct passing {
	int64_t datagram_at;	/* a datagram, either way */
	int64_t filled_at;	/* a segment or more came at once */
};

/* Does it carry datagrams at present? */
bool passing_datagrams(const struct passing *passing, int64_t now);

void owed_init(struct pipe *p);

/* One read of its socket brought @len bytes, or none. */
void owed_came(struct pipe *p, size_t len);

#endif
