/* SPDX-License-Identifier: MIT */
/*
 * The datagrams of one flow that wait at their sender for a pipe that takes
 * them. They are worth something only if they come soon: there are never more than
 * DATAGRAMS_MOST, the oldest goes for one too many, and what waited longer than
 * DATAGRAM_PATIENCE_MS goes instead of being sent.
 *
 * Items are the owner's memory, embedded in what they are about.
 */
#ifndef TM3_DATAGRAMS_H
#define TM3_DATAGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DATAGRAMS_MOST = 64,
	DATAGRAM_PATIENCE_MS = 100,
	/* A flow on which nothing passed for so long ends: one to servers of
	 * names alone, and any other. */
	FLOW_IDLE_NAMES_S = 10,
	FLOW_IDLE_S = 120,
	NAMES_PORT = 53,
	FLOW_MTU_PAUSE_MS = 100,	/* between two TOO_BIG of a flow */
};

struct datagram_item {
	struct datagram_item *next;
	int64_t came_at;	/* ns, by the owner's clock */
	size_t size;		/* as a message, header included */
};

struct datagram_queue {
	struct datagram_item *first, **end;
	unsigned int count;
	size_t bytes;
};

/* What one takes of memory, its owner's bytes behind it and the allocator's included. */
static inline size_t datagram_memory(const struct datagram_item *item)
{
	return (sizeof(*item) + item->size + 8 + 15) & ~(size_t)15;
}

void datagrams_init(struct datagram_queue *q);

/* Returns the one that goes for it, the owner's again; NULL: there is room. */
struct datagram_item *datagrams_put(struct datagram_queue *q,
				    struct datagram_item *item, int64_t now);

/* The first if it has waited for too long, the owner's again; else NULL. */
struct datagram_item *datagrams_stale(struct datagram_queue *q, int64_t now);

/* The first, or NULL. It stays; datagrams_take() takes it away. */
const struct datagram_item *datagrams_first(const struct datagram_queue *q);
struct datagram_item *datagrams_take(struct datagram_queue *q);

/* How long a flow may be idle, in ns. @names: all of it went to port 53. */
int64_t datagrams_idle_limit(bool names);

#endif
