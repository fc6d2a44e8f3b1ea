/* SPDX-License-Identifier: MIT */
/*
 * What a process refused because of a limit, by kind and by peer: counted, and said
 * at most once in SELDOM_SECONDS for each peer and kind. The first time whoever
 * refuses says what it was about; what follows is counted, and one line tells how many
 * more there were. So it is, too, with what is no refusal, but said at a peer's will.
 *
 * So many peers may be told apart at a time; the others share a line for each kind.
 * Without memory nothing is said of a peer, but it is counted.
 *
 * Any thread may note; what is said later is said by the one whose loop it is.
 */
#ifndef TM3_REFUSALS_H
#define TM3_REFUSALS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "inbox.h"
#include "list.h"
#include "loop.h"

enum { REFUSALS_PEERS = 64, REFUSALS_WHO = 64, REFUSALS_KINDS = 25 };

struct log;

struct refusals_kind {
	const char *name;	/* in statistics */
	const char *text;	/* behind "312 more " */
	unsigned int lines;	/* of a peer in SELDOM_SECONDS, one by one; 0: as 1 */
	bool in_order;		/* as such: what is said one by one is not counted */
};

struct refusals {
	struct loop *loop;
	struct log *log;
	const struct refusals_kind *kind;
	struct inbox *inbox;	/* of the loop; NULL: no other thread notes */
	struct errand errand;	/* by which it is told that there is something to say */
	pthread_mutex_t lock;	/* what follows is under it, but for the timer */
	uint64_t count[REFUSALS_KINDS];
	bool changed;		/* since the owner last told of them */
	struct list said;	/* by peer and kind, what was said longest ago first */
	unsigned int peers;
	bool awaited;		/* the timer runs, or the errand is on its way */
	struct timer timer;	/* runs while there is one of these */
};

/* @kind: what may be refused, REFUSALS_KINDS at most; which is which is the caller's. */
void refusals_init(struct refusals *r, struct loop *loop, struct log *log,
		   const struct refusals_kind *kind);
void refusals_fini(struct refusals *r);
/* Other threads note, too, while @inbox is there: the one of the loop. NULL: no more. */
void refusals_share(struct refusals *r, struct inbox *inbox);
/* All counts as they are, once they changed since it was asked last; false: they did not. */
bool refusals_news(struct refusals *r, uint64_t count[REFUSALS_KINDS]);

/*
 * @who met the limit @what. Returns whether to log it now; it is counted in
 * either case. Of who has a longer name REFUSALS_WHO - 1 bytes count.
 */
bool refusals_note(struct refusals *r, unsigned int what,
		   const char *who);
/* The same of whom @peer counts for (payer.h). */
bool refusals_note_peer(struct refusals *r, unsigned int what,
			const struct sockaddr_storage *peer);

#endif
