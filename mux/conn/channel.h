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
	struct early limit;	/* at RP, used is what it holds of such bytes */
	struct list waiters;	/* channels whose connection waits for more */
};

/* There is one for each id that was ever used: what is small stands together. */
struct channel {
	struct use use;
	uint16_t id;
	bool flow_had_it : 1;	/* so it has to rest, see rests_until */
	bool hint_with_open : 1;	/* see said */
	bool hint_early : 1;	/* said before SYNACK came, so it may have been nobody's */
	bool in_use : 1;	/* somebody is expected to use what was granted, see window */
	struct reorder order;	/* of what is received */
	struct credit_out out;
	struct credit_in in;
	struct conn *conn;	/* of the use, as long as it listens; or NULL */
	struct early_pool *pool;
	uint64_t early;		/* bytes of this use that count in the pool */
	struct list waits;	/* in pool->waiters */
	struct list spare;	/* the owner's, of ids for use again */
	int64_t rests_until;	/* by the owner's clock, what a flow had */

	/* What the other end is told of the bytes that it sends in this use, by a HINT that
	 * follows OPEN on its pipe, or else when the owner says it. */
	struct hint said;
	uint64_t said_to;	/* as c->told_to, of what the connection receives */
	struct list hint_due;	/* the owner's */

	/* The owner's: what it lets the other end send. */
	struct list window_due;	/* of those whose WINDOW is to be sent */
	uint64_t window;	/* bytes ahead of the application */
	uint64_t round_from;	/* what it had taken when a round began, */
	int64_t round_at;	/* and when that was */
	uint64_t taken;		/* by the application, of what is in order, */
	int64_t taken_at;	/* and when that was seen to change */
};

extern const struct conn_speech channel_speech;

void channel_init(struct channel *ch, uint16_t id, struct early_pool *pool);
void channel_fini(struct channel *ch);

/* @c is the connection of the next use. */
void channel_attach(struct channel *ch, struct conn *c);
/* Its connection listens no more. */
void channel_detach(struct channel *ch);

/* The HINT that says what is to be said of its connection now. */
struct wire_ext channel_hint(const struct channel *ch);

/* SYNACK was sent or came: early bytes of this use count no longer. */
void channel_answered(struct channel *ch);

/* Bytes that the other end may still send. */
uint64_t channel_promised(const struct channel *ch);

#endif
