/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../mux/base/log.h"
#include "../mux/pipe/conduit.h"
#include "guest.h"
#include "options.h"

/* --- its thread --- */

/* Who has no more events has no way to end its sessions in order, nor does the first thread. */
static void *work(void *arg)
{
	struct worker *w = arg;
	int err = loop_run(w->engine->loop);

	if (!err)
		return NULL;
	log_error(w->engine->log, "worker %u: waiting for events failed: %s",
		  w->number, strerror(-err));
	_exit(EXIT_FAILURE);
}

static void stop(struct errand *e)
{
	loop_stop(container_of(e, struct worker, last)->engine->loop);
}

int worker_start(struct worker *w)
{
	int err;

	w->looked_at = loop_clock();
	err = pthread_create(&w->thread, NULL, work, w);
	w->runs = !err;
	return -err;
}

void worker_stop(struct worker *w)
{
	if (!w->runs)
		return;
	w->last.run = stop;
	inbox_post(&w->inbox, &w->last);
	pthread_join(w->thread, NULL);
	w->runs = false;
}

void worker_tell(struct worker *w, struct errand *e)
{
	if (w->runs)
		inbox_post(&w->inbox, e);
	else
		e->run(e);
}

/* --- how busy it is --- */

int64_t worker_cpu(const struct worker *w)
{
	struct timespec used;
	clockid_t clock;

	if (!w->runs || pthread_getcpuclockid(w->thread, &clock) ||
	    clock_gettime(clock, &used))
		return 0;
	return used.tv_sec * NS_PER_SEC + used.tv_nsec;
}

void worker_look(struct worker *w)
{
	int64_t now = loop_clock(), cpu = worker_cpu(w);

	if (now > w->looked_at)
		w->busy = (unsigned int)(4 * (cpu - w->cpu) /
					 (now - w->looked_at));
	w->cpu = cpu;
	w->looked_at = now;
}

/* --- what it has --- */

static bool give_up(struct quota_share *share)
{
	return guest_gives_up(container_of(share, struct guest, share));
}

void worker_review(struct worker *w)
{
	quota_set(&w->quota, engine_memory(w->engine), UINT_MAX, UINT_MAX);
	connects_review(&w->connects);
	engine_balance(w->engine);
	loop_after(w->engine->loop, &w->engine->relief);
}

static int init_engine(struct worker *w, struct engine *first,
		       unsigned int beside)
{
	w->engine = first;
	if (!beside)
		return 0;
	if (engine_init_beside(&w->own, first, beside))
		return errno ? -errno : -ENOMEM;
	w->engine = &w->own;
	w->has_engine = true;
	if (first->layers) {
		w->own.layers = first->layers->beside(first->layers);
		if (!w->own.layers)
			return -ENOMEM;
	}
	return inbox_open(&w->inbox, w->own.loop);
}

int worker_init(struct worker *w, struct engine *first, unsigned int beside,
		const struct options *options,
		const struct entrances *const entrances[REACH_ENTRANCES])
{
	int err = init_engine(w, first, beside);

	if (err) {
		log_error(first->log, "worker %u cannot be made: %s", w->number,
			  strerror(-err));
		return err;
	}
	quota_init(&w->quota, &w->engine->hoard, &w->engine->budgets, UINT_MAX,
		   UINT_MAX, NULL, give_up);
	w->reach = (struct reach){ &options->access, &w->host,
				   { entrances[0], entrances[1] } };
	err = connects_init(&w->connects, w->engine, options, &w->reach,
			    &w->quota);
	host_open(&w->host, w->engine->loop, w->engine->log, NULL);
	if (err)
		log_error(first->log, "names cannot be looked up: %s",
			  strerror(-err));
	return err;
}

void worker_fini(struct worker *w)
{
	connects_fini(&w->connects);
	if (w->host.loop)
		host_close(&w->host);
	if (!w->has_engine)
		return;
	inbox_close(&w->inbox);
	if (w->own.layers)
		w->own.layers->put_beside(w->own.layers);
	engine_fini(&w->own);
	w->has_engine = false;
}
