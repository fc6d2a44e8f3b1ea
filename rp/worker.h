/* SPDX-License-Identifier: MIT */
/*
 * A worker: what serves sessions, with all that they have in common. Each but the only
 * one has a thread and an engine of its own, and a part of the memory and of the
 * descriptors that sessions may have; nothing of that is another worker's. The only worker
 * is the first thread, with the engine of the process.
 */
#ifndef TM3_RP_WORKER_H
#define TM3_RP_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "../mux/base/halt.h"
#include "../mux/base/host.h"
#include "../mux/base/inbox.h"
#include "../mux/session/engine.h"
#include "connects.h"
#include "quota.h"
#include "reach.h"

struct options;

struct worker {
	unsigned int number;	/* from 1 */
	struct engine *engine;
	struct host host;
	struct reach reach;
	struct connects connects;
	struct quota quota;	/* of memory and sockets, by who has them */
	/* Unless it is the only one: */
	struct engine own;
	bool has_engine, runs;
	struct inbox inbox;
	struct halt_place halts;
	struct errand last;
	pthread_t thread;
	/* The first thread's alone: */
	unsigned int guests;
	int64_t cpu, looked_at;	/* ns, what it had used by then */
	unsigned int busy;	/* quarters of a core, from the look before to that one */
};

/*
 * @entrances: of the process, in the order of reach.h. @beside: it is one of so many, with an
 * engine of its own; 0: it is the only one. 0, or -errno after it said what is wrong. Call
 * worker_fini() in either case.
 */
int worker_init(struct worker *w, struct engine *first, unsigned int beside,
		const struct options *options,
		const struct entrances *const entrances[REACH_ENTRANCES]);
/* Its thread has ended, and its sessions. */
void worker_fini(struct worker *w);

/* Its thread begins. 0 or -errno. */
int worker_start(struct worker *w);
/* Ends its thread, after all errands that were posted before. */
void worker_stop(struct worker *w);

/* @e is run by its thread; where it has none, at once. */
void worker_tell(struct worker *w, struct errand *e);

/* Other limits count from now on. It has halted. */
void worker_review(struct worker *w);

/* What its thread has used of the processor, ns; 0 where it has none. */
int64_t worker_cpu(const struct worker *w);
/* Finds out how busy it has been since this was called last. */
void worker_look(struct worker *w);

#endif
