/* SPDX-License-Identifier: MIT */
/*
 * Cutting: what a connection has ready becomes a chunk (conn/chunk.h), of which one path takes the
 * front and the other one the end, where the policy of paths says so.
 *
 * The other end has to buffer what comes from the end until the front has come. So all chunks of a
 * session together, and what it says in its ACKs to have out of order, are a part of what it may
 * buffer. A chunk is in memory before it is sent, and counts as kept from then on.
 */
#include "../base/sizes.h"
#include "../conn/chunk.h"
#include "../conn/conn.h"
#include "extended.h"

enum {
	CHUNK_MAX = 4 << 20,
	CHUNK_MESSAGES = 2,	/* less has no two ends */
	REORDER_SHARE = 4,	/* of what the other end may buffer */
};

/* Bytes that the other end could still buffer out of order. */
static size_t reorder_room(const struct extended *x)
{
	size_t said = x->lp ? x->welcome.reorder_limit : x->hello.reorder_limit;

	return size_less(said / REORDER_SHARE, x->cut + x->early_there);
}

/* OPEN or SYNACK goes first, and so does a HINT that binds its first bytes. */
static bool may_be_cut(const struct conn *c)
{
	return !conn_outlook(c)->chunk && c->tx_messages && !c->flow &&
	       !c->channel->hint_first;
}

static void cut(struct session *s, struct conn *c, size_t payload)
{
	struct extended *x = s->ext;
	size_t most = size_least(size_least(CHUNK_MAX, reorder_room(x)), keeping_room(x));

	/* A slow path takes of it, too, or SCTP, or who has a key: there no message is large. */
	payload = size_least(payload, WIRE_PAYLOAD_MAX);
	if (may_be_cut(c) && most >= CHUNK_MESSAGES * payload)
		conn_cut(c, CHUNK_MESSAGES * payload, most, payload);
}

void cutting_frame(struct session *s, const struct next *next, struct run *run)
{
	const struct path_choice *choice = &s->sched.path;
	struct conn *c = next->conn;
	size_t before = conn_chunk_size(c);

	if (path_choice_cuts(choice, c))
		cut(s, c, next->payload);
	keeping_cut(s->ext, (int64_t)(conn_chunk_size(c) - before));
	before = conn_chunk_size(c);
	if (before && path_choice_from_end(choice, next->pipe, c))
		conn_frame_last(c, run);
	else
		conn_frame(c, run, next->bytes, next->payload);
	keeping_cut(s->ext, (int64_t)(conn_chunk_size(c) - before));
	s->counts.hints_sent += run->hints;
}
