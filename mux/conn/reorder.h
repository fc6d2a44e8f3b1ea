/* SPDX-License-Identifier: MIT */
/*
 * The reorder queue of one connection and direction: messages come by number
 * over any pipe, and leave in order.
 *
 * The next message in order is never stored: reorder_put() answers
 * REORDER_DUE and counts it as delivered, the caller uses its bytes where they
 * lie and then takes what it released with reorder_take() until that gives
 * NULL. (Until it did, a copy of a message that waits to be taken is a
 * duplicate like any other.)
 *
 * A message that came early is copied and kept: a few in a plain list, more in
 * a hash by number, so that cost and memory follow what is kept, not how far
 * ahead it is.
 *
 * No sockets, no clock (the caller says what time it is). A queue in which nothing
 * waits owns no memory and is small, since every connection has one, and every id of the
 * extension: all that is about what waits is made for the first message and given back
 * with the last.
 */
#ifndef TM3_REORDER_H
#define TM3_REORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/list.h"
#include "../wire/wire.h"

struct reorder_early {		/* a message that came early */
	struct reorder_early *chain;	/* then for the taker's use */
	int64_t came_at;		/* ns */
	uint32_t number;
	uint16_t body_len;
	uint8_t type;			/* enum wire_type */
	bool hollow;			/* the body was let go, not its length */
	uint8_t body[];
};

/* What waits in a queue for the number that it expects. */
struct reorder_waiting {
	struct reorder *of;
	union {
		struct reorder_early *few;	/* all early messages, while they are few, */
		struct reorder_early **bucket;	/* or else a table of them: */
	};
	uint8_t bits;			/* with as many places as this has values; 0: few */
	uint8_t class;			/* see ranking */
	uint32_t count;			/* of early messages */
	size_t bytes;			/* memory they take, bookkeeping included */
	size_t payload;			/* their payload bytes */
	int64_t since;			/* the owner's: it expects that number since */
	struct list ranked;		/* see ranking: of those with as much */
};

struct reorder {
	struct reorder_waiting *waiting;	/* NULL: nothing does */
	uint32_t next;				/* the number expected */
};

enum reorder_verdict {
	REORDER_DUE,		/* the next in order: deliver it now */
	REORDER_EARLY,
	REORDER_DUPLICATE,	/* delivered or kept before: drop it */
	REORDER_TOO_FAR,	/* than WIRE_NUMBER_WINDOW: end it */
	REORDER_NO_MEMORY,
};

/* @first: the number expected first. */
void reorder_init(struct reorder *q, uint32_t first);

static inline uint32_t reorder_count(const struct reorder *q)
{
	return q->waiting ? q->waiting->count : 0;
}

static inline size_t reorder_bytes(const struct reorder *q)
{
	return q->waiting ? q->waiting->bytes : 0;
}

static inline size_t reorder_payload(const struct reorder *q)
{
	return q->waiting ? q->waiting->payload : 0;
}

/* What one of them counts in that. */
static inline size_t reorder_payload_of(const struct reorder_early *early)
{
	return early->type == WIRE_DATA && !early->hollow ? early->body_len : 0;
}

/*
 * Drops the early messages. The queue is empty then and can be used on: the number
 * expected stays.
 */
void reorder_fini(struct reorder *q);

/*
 * Lets go the bytes of early data messages, and keeps their places, of so many bytes of memory
 * each: whose order goes on behind its connection takes them as they become due, and drops
 * them.
 */
enum { REORDER_PLACE = 32 };

void reorder_hollow(struct reorder *q);

/* @msg is copied if it came early; else its bytes are not looked at. */
enum reorder_verdict reorder_put(struct reorder *q, const struct wire_msg *msg,
				 int64_t now);

/*
 * The next message if it came early, else NULL. It now is the caller's, to give
 * to reorder_release(); as long as it lives its bytes stay where they are.
 */
struct reorder_early *reorder_take(struct reorder *q);
void reorder_release(struct reorder_early *early);

#endif
