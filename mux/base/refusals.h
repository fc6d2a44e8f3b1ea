/* SPDX-License-Identifier: MIT */
/*
 * What a process refused because of a limit, by kind and by peer: counted, and said
 * at most once in SELDOM_SECONDS for each peer and kind. The first time whoever
 * refuses says what it was about; what follows is counted, and one line tells how many
 * more there were.
 *
 * So many peers may be told apart at a time; the others share a line for each kind.
 * Without memory nothing is said of a peer, but it is counted.
 */
#ifndef TM3_REFUSALS_H
#define TM3_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "list.h"
#include "loop.h"

enum { REFUSALS_PEERS = 64, REFUSALS_WHO = 64, REFUSALS_KINDS = 24 };

struct log;

struct refusals_kind {
	const char *name;	/* in statistics */
	const char *text;	/* behind "312 more " */
};

struct refusals {
	struct loop *loop;
	struct log *log;
	const struct refusals_kind *kind;
	uint64_t count[REFUSALS_KINDS];
	bool changed;		/* since the owner last told of them */
	struct list said;	/* by peer and kind, what was said longest ago first */
	unsigned int peers;
	struct timer timer;	/* runs while there is one of these */
};

/* @kind: what may be refused, REFUSALS_KINDS at most; which is which is the caller's. */
void refusals_init(struct refusals *r, struct loop *loop, struct log *log,
		   const struct refusals_kind *kind);
void refusals_fini(struct refusals *r);

/*
 * @who met the limit @what. Returns whether to log it now; it is counted in
 * either case.
 */
bool refusals_note(struct refusals *r, unsigned int what,
		   const char *who);
/* The same of whom @peer counts for (payer.h). */
bool refusals_note_peer(struct refusals *r, unsigned int what,
			const struct sockaddr_storage *peer);

#endif
