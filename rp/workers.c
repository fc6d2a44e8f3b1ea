/* SPDX-License-Identifier: MIT */
#include "workers.h"

#include <string.h>

#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "options.h"

#define LOOK_INTERVAL NS_PER_SEC

bool workers_are_several(const struct workers *all)
{
	return all->n > 1;
}

struct worker *workers_least_busy(struct workers *all)
{
	struct worker *least = &all->worker[0];
	unsigned int i;

	for (i = 1; i < all->n; i++) {
		struct worker *w = &all->worker[i];

		if (w->busy < least->busy ||
		    (w->busy == least->busy && w->guests < least->guests))
			least = w;
	}
	return least;
}

void workers_tell_first(struct workers *all, struct errand *e)
{
	if (workers_are_several(all))
		inbox_post(&all->inbox, e);
	else
		e->run(e);
}

void workers_review(struct workers *all)
{
	unsigned int i;

	for (i = 0; i < all->n; i++)
		worker_review(&all->worker[i]);
}

void workers_print(const struct workers *all, FILE *out)
{
	unsigned int i;

	for (i = 0; workers_are_several(all) && i < all->n; i++) {
		const struct worker *w = &all->worker[i];

		fprintf(out, "worker %u: %u session%s, %.2f s of processor time\n",
			w->number, w->guests, plural(w->guests),
			(double)worker_cpu(w) / (double)NS_PER_SEC);
	}
}

/* --- how busy they are --- */

/* What one did before is no sign of what it does now: a guest that idled for hours may have begun. */
static void look(struct timer *t)
{
	struct workers *all = container_of(t, struct workers, look);
	unsigned int i;

	for (i = 0; i < all->n; i++)
		worker_look(&all->worker[i]);
	loop_timer_in(all->engine->loop, t, LOOK_INTERVAL);
}

/* --- whether they go on --- */

static void is_back(struct errand *e)
{
	container_of(e, struct worker_sign, errand)->awaited = false;
}

/* By the worker. */
static void send_back(struct errand *e)
{
	struct worker_sign *sign = container_of(e, struct worker_sign, errand);

	e->run = is_back;
	workers_tell_first(sign->all, e);
}

static void ask(struct workers *all, unsigned int i)
{
	struct worker_sign *sign = &all->sign[i];

	sign->all = all;
	sign->awaited = true;
	sign->errand.run = send_back;
	worker_tell(&all->worker[i], &sign->errand);
}

bool workers_are_alive(struct workers *all)
{
	unsigned int i;

	for (i = 0; i < all->n; i++) {
		if (all->sign[i].awaited)
			return false;
	}
	for (i = 0; workers_are_several(all) && i < all->n; i++)
		ask(all, i);
	return true;
}

/* --- life --- */

int workers_start(struct workers *all)
{
	unsigned int i;
	int err = 0;

	if (workers_are_several(all))
		err = loop_timer_in(all->engine->loop, &all->look, LOOK_INTERVAL);
	if (err) {
		log_error(all->engine->log, "workers cannot be started: %s",
			  strerror(-err));
		return err;
	}
	for (i = 0; workers_are_several(all) && i < all->n; i++) {
		struct worker *w = &all->worker[i];

		w->own.stats = all->engine->stats;
		err = worker_start(w);
		if (err) {
			log_error(all->engine->log, "worker %u cannot be started: %s",
				  w->number, strerror(-err));
			return err;
		}
		halt_add(&all->halt, &w->halts, &w->inbox);
	}
	return 0;
}

void workers_stop(struct workers *all)
{
	unsigned int i;

	loop_timer_stop(all->engine->loop, &all->look);
	for (i = 0; i < all->n; i++)
		worker_stop(&all->worker[i]);
	halt_clear(&all->halt);
	if (workers_are_several(all) && all->inbox.loop)
		inbox_read(&all->inbox);
}

static int open_inbox(struct workers *all)
{
	struct engine *engine = all->engine;
	int err = inbox_open(&all->inbox, engine->loop);

	if (err) {
		log_error(engine->log, "workers cannot be made: %s",
			  strerror(-err));
		return err;
	}
	incidents_share(&engine->incidents, &all->inbox);
	engine->halt = &all->halt;
	return 0;
}

int workers_init(struct workers *all, struct engine *engine,
		 const struct options *options,
		 const struct entrances *const entrances[REACH_ENTRANCES])
{
	unsigned int n = options->workers;
	int err = 0;

	memset(all, 0, sizeof(*all));
	halt_init(&all->halt);
	all->engine = engine;
	all->look.fire = look;
	if (n > 1)
		err = open_inbox(all);
	while (!err && all->n < n) {
		struct worker *w = &all->worker[all->n++];

		w->number = all->n;
		err = worker_init(w, engine, n > 1 ? n : 0, options,
				  entrances);
	}
	return err;
}

void workers_fini(struct workers *all)
{
	workers_stop(all);
	all->engine->next = NULL;
	all->engine->halt = NULL;
	incidents_share(&all->engine->incidents, NULL);
	while (all->n)
		worker_fini(&all->worker[--all->n]);
	inbox_close(&all->inbox);
	halt_fini(&all->halt);
}
