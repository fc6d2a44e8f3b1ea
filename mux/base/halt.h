/* SPDX-License-Identifier: MIT */
/*
 * One thread has the others halt while it looks at what is theirs, or changes it: between
 * two events of their loops, so as if it were called from there. For what is done seldom:
 * it takes as long as the longest batch of events that is under way.
 *
 * One thread alone begins and ends halts, and none of those that halt may wait for it.
 */
#ifndef TM3_HALT_H
#define TM3_HALT_H

#include <pthread.h>
#include <stdint.h>

#include "inbox.h"
#include "list.h"

struct halt {
	struct list places;	/* of those that halt */
	unsigned int n, depth;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int halted;	/* under the lock, */
	uint64_t round;		/* as is the number of halts that have ended */
};

struct halt_place {		/* of one that halts */
	struct halt *halt;
	struct list member;
	struct inbox *inbox;
	struct errand errand;
};

void halt_init(struct halt *h);
/* Nobody halts. */
void halt_fini(struct halt *h);

/* Who reads @inbox halts from now on; or nobody any more. */
void halt_add(struct halt *h, struct halt_place *place, struct inbox *inbox);
void halt_clear(struct halt *h);

/*
 * Returns when all of them have halted. A halt within a halt is none. With NULL, for
 * who has no other threads, both do nothing.
 */
void halt_begin(struct halt *h);
/* Once for each halt_begin(): with the last of them they go on. */
void halt_end(struct halt *h);

#endif
