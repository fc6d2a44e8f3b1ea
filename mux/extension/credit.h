/* SPDX-License-Identifier: MIT */
/*
 * Credit of one id and direction. All amounts are payload bytes since the
 * session began, over all uses of the id: so a WINDOW that comes late says
 * nothing wrong about the use that it meets. Copies take no credit.
 *
 * Until SYNACK the opener is bound by the early limits instead. What it sent
 * under them is never too much, though the SYNACK that is under way may allow
 * less: so the receiver's limit is the larger of both.
 */
#ifndef TM3_CREDIT_H
#define TM3_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct credit_out {		/* at the sender */
	uint64_t sent;
	uint64_t allowed;	/* by the largest offset that came */
};

struct credit_in {		/* at the receiver */
	uint64_t taken;
	uint64_t granted;	/* the offset that was told last */
	uint64_t early;		/* what the early limit allowed */
};

/* Bytes that may be sent now. */
uint64_t credit_left(const struct credit_out *out);

/* An offset came. False: it is no larger than one before; nothing changes. */
bool credit_allow(struct credit_out *out, uint64_t offset);

/* @n bytes are due. False: they are more than was allowed. */
bool credit_take(struct credit_in *in, uint64_t n);

/* Grants @ahead bytes beyond what was taken; the offset to tell. It never
 * shrinks: granting less than before grants nothing. */
uint64_t credit_grant(struct credit_in *in, uint64_t ahead);

/* A use begins here that may send @limit bytes before its SYNACK. */
void credit_begin_early(struct credit_in *in, uint64_t limit);

/* The early limits at the opener. */
struct early {
	uint64_t conn;		/* limit of one use */
	uint64_t all;		/* limit of all together */
	uint64_t used;		/* by all uses whose SYNACK has not come */
};

/* Bytes that a use may still send which sent @by_use early ones. */
uint64_t early_left(const struct early *early, uint64_t by_use);

#endif
