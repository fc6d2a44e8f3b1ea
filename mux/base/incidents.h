/* SPDX-License-Identifier: MIT */
/*
 * Incidents: that a limit was met, or what a peer can have the log say at its will, by kind
 * and by peer. Each is counted, and said at most once in SELDOM_SECONDS for each peer and
 * kind. The first time whoever notes it says what it was about; what follows is counted, and
 * one line tells how many more there were.
 *
 * So many peers may be told apart at a time; the others share a line for each kind.
 * Without memory nothing is said of a peer, but it is counted.
 *
 * Any thread may note; what is said later is said by the one whose loop it is.
 */
#ifndef TM3_INCIDENTS_H
#define TM3_INCIDENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "inbox.h"
#include "list.h"
#include "loop.h"

enum { INCIDENTS_PEERS = 64, INCIDENTS_WHO = 64, INCIDENTS_KINDS = 25 };

struct log;

struct incidents_kind {
	const char *name;	/* in statistics */
	const char *text;	/* behind "312 more " */
	unsigned int lines;	/* of a peer in SELDOM_SECONDS, one by one; 0: as 1 */
	bool in_order;		/* as such: what is said one by one is not counted */
};

struct incidents {
	struct loop *loop;
	struct log *log;
	const struct incidents_kind *kind;
	struct inbox *inbox;	/* of the loop; NULL: no other thread notes */
	struct errand errand;	/* by which it is told that there is something to say */
	pthread_mutex_t lock;	/* what follows is under it, but for the timer */
	uint64_t count[INCIDENTS_KINDS];
	bool changed;		/* since the owner last told of them */
	struct list said;	/* by peer and kind, what was said longest ago first */
	unsigned int peers;
	bool awaited;		/* the timer runs, or the errand is on its way */
	struct timer timer;	/* runs while there is one of these */
};

/* @kind: what may happen, INCIDENTS_KINDS at most; which is which is the caller's. */
void incidents_init(struct incidents *r, struct loop *loop, struct log *log,
		    const struct incidents_kind *kind);
void incidents_fini(struct incidents *r);
/* Other threads note, too, while @inbox is there: the one of the loop. NULL: no more. */
void incidents_share(struct incidents *r, struct inbox *inbox);
/* All counts as they are, once they changed since it was asked last; false: they did not. */
bool incidents_news(struct incidents *r, uint64_t count[INCIDENTS_KINDS]);

/*
 * To @who happened @what. Returns whether to log it now; it is counted in
 * either case. Of who has a longer name INCIDENTS_WHO - 1 bytes count.
 */
bool incidents_note(struct incidents *r, unsigned int what,
		    const char *who);
/* The same of whom @peer counts for (payer.h). */
bool incidents_note_peer(struct incidents *r, unsigned int what,
			 const struct sockaddr_storage *peer);

#endif
