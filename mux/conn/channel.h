/* SPDX-License-Identifier: MIT */
/*
 * A channel: an id of a session of the extension. It serves for one connection
 * after another, and has what outlives them: the numbers, order and credit of
 * both directions go on over all uses (extension/use.h, extension/credit.h).
 *
 * Connections of a channel speak channel_speech: OPEN or SYNACK is framed first, numbers
 * are the channel's, and its credit is spent.
 */
#ifndef TM3_CHANNEL_H
#define TM3_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/list.h"
#include "../extension/credit.h"
#include "../extension/use.h"
#include "hint.h"
#include "reorder.h"

struct conn;
struct conn_speech;
struct wire_ext;

/* What all channels of a session share before SYNACK. */
struct early_pool {
	struct early limit;	/* at RP, used is what it has of such bytes */
	struct list waiters;	/* channels whose connection waits for more */
};

/* What the other end is told of the bytes that it sends on a connection, by a HINT. */
struct hint_said {
	struct channel *of;
	struct hint hint;
	uint64_t to;		/* as outlook.told_to, of what the connection receives */
	struct list due;	/* the owner's: of those that are to be said */
};

/*
 * There is one for each id that was ever used: what is small stands together. It stands in one
 * line at a time: between two uses in the owner's line of ids for use again, or of those that have
 * to rest; before SYNACK has come in pool->waiters, if its connection may not send more; and from
 * then on in the owner's line of those whose WINDOW is to be sent.
 */
struct channel {
	struct use use;
	uint16_t id;
	uint8_t slot;		/* the slab's */
	bool flow_had_it : 1;	/* so it has to rest, see rests_until */
	bool hint_early : 1;	/* said before SYNACK came, so it may have been nobody's */
	bool hint_first : 1;	/* one binds it: to go ahead of the connection's first bytes */
	bool hint_heard : 1;	/* one was heeded that came for @conn */
	bool hint_waits : 1;	/* one came that waits with a message that is not due */
	bool in_use : 1;	/* somebody is expected to use what was granted, see window */
	struct reorder order;	/* of what is received */
	struct credit_out out;
	struct credit_in in;
	struct conn *conn;	/* of the use, as long as it listens; or NULL */
	struct early_pool *pool;
	struct list line;	/* see above */
	int64_t rests_until;	/* by the owner's clock, what a flow had */
	struct hint_said *said;	/* as long as @conn is there; NULL: nothing was */
	uint32_t early;		/* bytes of this use that count in the pool */

	/* The owner's: what it lets the other end send. */
	uint32_t window;	/* bytes ahead of the application */
	/* Bytes of what is in order, modulo 2^32: only their differences are asked for. */
	uint32_t taken;		/* by the application, */
	uint32_t round_from;	/* and when a round began, */
	int64_t round_at;	/* which was then; */
	int64_t taken_at;	/* and when more was seen to be taken */
};

extern const struct conn_speech channel_speech;

/* @ch is zeros, and the slab's byte. */
void channel_init(struct channel *ch, uint16_t id, struct early_pool *pool);
void channel_fini(struct channel *ch);

/* @c is the connection of the next use. */
void channel_attach(struct channel *ch, struct conn *c);
/* Its connection listens no more. */
void channel_detach(struct channel *ch);

/* For what is to be said of its connection. NULL: no memory. */
struct hint_said *channel_says(struct channel *ch);
/* The HINT that says it now. */
struct wire_ext channel_hint(const struct channel *ch);

/* SYNACK was sent or came: early bytes of this use count no longer. */
void channel_answered(struct channel *ch);

/* Bytes that the other end may still send. */
uint64_t channel_promised(const struct channel *ch);

#endif
