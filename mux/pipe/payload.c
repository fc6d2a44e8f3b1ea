/* SPDX-License-Identifier: MIT */
/*
 * How much of a connection's bytes one message has. On a slow pipe a segment's, so that nothing
 * is committed early and what is lost delays little else. On a fast one as much as the wire
 * format allows: each message costs both ends as much as the next one, whatever its size.
 */
#include "pipe.h"

enum {
	LEAST = 512,
	LARGE_ALLOWANCE = 64 * 1024,	/* of 130 Mbit/s: a large message takes 1 ms of it */
};

/* Of a layer the records are to be filled, and what is lost of SCTP is a chunk. */
static bool takes_large(const struct pipe *p)
{
	return p->allowance >= LARGE_ALLOWANCE && p->settings->late &&
	       !p->layer && p->transport != TRANSPORT_SCTP &&
	       p->shared && p->shared->large;	/* a model's pipes share nothing */
}

size_t pipe_payload(const struct pipe *p)
{
	size_t mss = p->info.mss;

	if (takes_large(p))
		return WIRE_LARGE_PAYLOAD;
	if (p->layer && mss > p->layer->overhead)
		mss -= p->layer->overhead;
	/* What is lost of SCTP is a chunk: a message shall be no more than that. */
	if (p->transport != TRANSPORT_SCTP &&
	    (!p->settings->late || p->allowance >= PIPE_FAST))
		return layer_piece(p->layer, WIRE_MESSAGE_MAX) - WIRE_HEADER;
	if (mss < LEAST + WIRE_HEADER)
		return LEAST;
	if (mss > WIRE_MESSAGE_MAX)
		return WIRE_PAYLOAD_MAX;
	return mss - WIRE_HEADER;
}
