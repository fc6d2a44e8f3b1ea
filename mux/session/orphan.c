/* SPDX-License-Identifier: MIT */
#include "orphan.h"

#include "../conn/conn.h"
#include "../settings/limits.h"
#include "engine.h"

static void queued(struct conn *c, size_t bytes)
{
	struct engine *engine = c->owner->self;

	engine->orphaned += bytes;
	engine_balance(engine);
}

static void released(struct conn *c, size_t bytes, size_t early)
{
	struct engine *engine = c->owner->self;

	(void)early;
	engine->orphaned -= bytes;
	engine_balance(engine);
}

static void gone(struct conn *c)
{
	conn_free(c);
}

/* The others are for connections that are not over. */
static const struct conn_ops ops = {
	.queued = queued,
	.released = released,
	.gone = gone,
};

void orphan(struct engine *engine, struct conn *c)
{
	if (!c->ended || c->state == CONN_CLOSED) {
		conn_free(c);
		return;
	}
	c->owner = &engine->orphanage;
	engine->orphaned += conn_queued(c);
	list_del(&c->place);
	list_move_tail(&engine->orphans, &c->member);
	conn_limit_time(c, ORPHAN_SECONDS * NS_PER_SEC);
	engine_balance(engine);
	if (engine->orphaned > ORPHANS_MAX ||
	    engine->orphaned > engine_memory(engine) / ORPHANS_SHARE)
		conn_abort(c, CONN_END_LIMIT);
}

/* Whatever they talked before, they have ended for the pipes. */
void orphans_init(struct engine *engine)
{
	list_init(&engine->orphans);
	conn_owner_init(&engine->orphanage, engine->loop, &engine->room, &ops,
			&conn_speech_baseline, engine);
}

void orphans_free(struct engine *engine)
{
	conn_owner_fini(&engine->orphanage);
	while (!list_empty(&engine->orphans))
		conn_free(list_first(&engine->orphans, struct conn, member));
}
