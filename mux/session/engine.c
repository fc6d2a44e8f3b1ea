/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#include "../base/udp_out.h"
#include "../conn/conn.h"
#include "orphan.h"
#include "session_inside.h"

enum { CONNS_EACH = 32 };	/* made at a time: 10 KiB */

static void relieve(struct task *t)
{
	hoard_relieve(&container_of(t, struct engine, relief)->hoard);
}

size_t engine_memory(const struct engine *engine)
{
	return engine->settings->max_memory / engine->parts;
}

static int init(struct engine *engine, const struct settings *settings,
		struct log *log, unsigned int parts)
{
	memset(engine, 0, sizeof(*engine));
	engine->settings = settings;
	engine->log = log;
	engine->parts = parts;
	engine->limits = &engine->incidents;
	list_init(&engine->extended);
	list_init(&engine->all);
	hoard_init(&engine->hoard, NULL, engine_memory(engine));
	loop_task_init(&engine->relief, relieve);
	loop_task_init(&engine->kept_relief, keeping_relieve);
	engine->loop = loop_new();
	slab_init(&engine->room, struct conn, slot, CONNS_EACH);
	orphans_init(engine);
	engine->scratch = malloc(ENGINE_SCRATCH);
	engine->udp_out = udp_out_new(engine->loop);
	budgets_init(&engine->budgets, engine->loop);
	incidents_init(&engine->incidents, engine->loop, log, incident_kinds);
	if (engine->loop && engine->scratch && engine->udp_out)
		return 0;
	engine_fini(engine);
	return -1;
}

int engine_init(struct engine *engine, const struct settings *settings,
		struct log *log)
{
	return init(engine, settings, log, 1);
}

int engine_init_beside(struct engine *engine, struct engine *first,
		       unsigned int parts)
{
	if (init(engine, first->settings, first->log, parts))
		return -1;
	engine->stats = first->stats;
	engine->limits = &first->incidents;
	engine->next = first->next;
	first->next = engine;
	return 0;
}

void engine_balance(struct engine *engine)
{
	size_t all = layered_leave(engine);
	size_t least = all / HOARD_SHARE;
	size_t taken = engine->kept + engine->orphaned +
		       (size_t)engine->conns * CONN_MEMORY;

	engine->hoard.max = taken < all - least ? all - taken : least;
	if (engine->hoard.bytes > engine->hoard.max)
		loop_after(engine->loop, &engine->relief);
}

void engine_fini(struct engine *engine)
{
	orphans_free(engine);
	incidents_fini(&engine->incidents);
	udp_out_free(engine->udp_out);
	loop_free(engine->loop);
	free(engine->scratch);
}
