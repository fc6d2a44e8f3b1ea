/* SPDX-License-Identifier: MIT */
/*
 * The uses of one id, at one end. An id serves for one connection after
 * another; each is a use of it. In each direction the numbers of the id go on over its
 * uses, from the session's beginning: so what is due tells which use it belongs
 * to, however late a copy comes. The numbers of what is received are those of a
 * struct reorder, which likewise lives as long as the session.
 *
 * A use begins with OPEN; the first message back is SYNACK, even if the opener
 * has reset the use meanwhile. Each direction ends with NO_MORE or RESET; RESET
 * may follow NO_MORE. The use ends, at this end, once this end has sent one
 * of them and was due one.
 */
#ifndef TM3_USE_H
#define TM3_USE_H

#include <stdbool.h>
#include <stdint.h>

enum use_kind { USE_OPEN, USE_SYNACK, USE_DATA, USE_NO_MORE, USE_RESET };

struct use {
	uint32_t number;	/* of the next message that this end sends */
	bool open;		/* a use has begun and is not over */
	bool opener;		/* this end began it */
	bool answered;		/* SYNACK was sent, or due */
	bool ended, reset;	/* this end sent NO_MORE or RESET; RESET */
	bool peer_ended, peer_reset;	/* the same was due */
};

enum use_verdict {
	USE_TAKE,		/* it means what it says */
	USE_DROP,		/* it only takes its number */
	USE_BROKEN,		/* it cannot be due now: the session ends */
};

void use_init(struct use *use, uint32_t first);

/* Whether this end may send such a message now. */
bool use_may_send(const struct use *use, enum use_kind kind);

/* This end sends it: returns its number. Only what use_may_send() allows. */
uint32_t use_send(struct use *use, enum use_kind kind);

/* The peer's message is due. */
enum use_verdict use_due(struct use *use, enum use_kind kind);

/* The peer has reset the use and this end has not ended it: RESET is due from
 * here, behind a SYNACK if that was not sent yet. */
bool use_owes_reset(const struct use *use);

#endif
