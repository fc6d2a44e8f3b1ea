/* SPDX-License-Identifier: MIT */
/*
 * All workers (worker.h), and what goes between them and the first thread. That one has
 * the doors, the guests' places, signals, metrics; it gives a guest to a worker, which
 * tells it when the guest has left. Where it has to look at what several workers have, or
 * to change it, it has them halt (base/halt.h).
 */
#ifndef TM3_RP_WORKERS_H
#define TM3_RP_WORKERS_H

#include <stdbool.h>
#include <stdio.h>

#include "../mux/base/halt.h"
#include "../mux/base/inbox.h"
#include "worker.h"

enum { WORKERS_MAX = 16 };

struct worker_sign {		/* of life: an errand to a worker and back */
	struct errand errand;
	struct workers *all;
	bool awaited;
};

struct workers {
	struct engine *engine;	/* of the process */
	unsigned int n;
	struct worker worker[WORKERS_MAX];
	struct halt halt;
	struct inbox inbox;	/* of the first thread, if it is not the only one, */
	struct timer look;	/* which looks how busy the others are, */
	struct worker_sign sign[WORKERS_MAX];	/* and whether they go on */
};

/* See worker_init(). Call workers_fini() in either case. */
int workers_init(struct workers *all, struct engine *engine,
		 const struct options *options,
		 const struct entrances *const entrances[REACH_ENTRANCES]);
void workers_fini(struct workers *all);

/* Their threads begin, if there are several. 0, or -errno after it said what is wrong. */
int workers_start(struct workers *all);
/* They end; what they told meanwhile is heard. */
void workers_stop(struct workers *all);

/* Who has least to do: whose thread was less busy lately; if none, who has fewer guests. */
struct worker *workers_least_busy(struct workers *all);
/* @e is run by the first thread; at once, where there is no other. */
void workers_tell_first(struct workers *all, struct errand *e);
/* Are there threads to be waited for, so that what several have takes a halt? */
bool workers_are_several(const struct workers *all);

/*
 * Has each of them come to its errands since this was called last? Once one has not, it is that
 * one which is waited for.
 */
bool workers_are_alive(struct workers *all);

/* Other limits count from now on. They have halted. */
void workers_review(struct workers *all);
/* How many guests each has, and how much it did, for a person; nothing of the only one. */
void workers_print(const struct workers *all, FILE *out);

#endif
