/* SPDX-License-Identifier: MIT */
/*
 * What the layers of pipes take of memory: each counts for the most that one may have,
 * whatever it has now, as what its session has charged. A layer's buffers fill and empty with
 * each read and write; a session that has many pipes can have all of them full.
 *
 * Who has not said yet which session a pipe is of has a part of its own.
 */
#include "session_inside.h"

static void account(struct session *s, int64_t bytes)
{
	s->layered += (size_t)bytes;
	inbound_charge(s, bytes);
}

void layered_enters(struct session *s, const struct layer *layer)
{
	if (layer)
		account(s, (int64_t)layer->memory);
}

void layered_leaves(struct session *s, const struct layer *layer)
{
	if (layer && s->layered)
		account(s, -(int64_t)layer->memory);
}

void layered_disregard(struct session *s)
{
	account(s, -(int64_t)s->layered);
}

unsigned int engine_may_wait(const struct engine *engine, unsigned int most)
{
	size_t fit;

	if (!engine->layers || !engine->layers->memory_shaking)
		return most;
	fit = engine_memory(engine) / SHAKING_SHARE /
	      engine->layers->memory_shaking;
	return fit < most ? (unsigned int)fit : most;
}

size_t layered_leave(const struct engine *engine)
{
	size_t all = engine_memory(engine);

	return engine->layers ? all - all / SHAKING_SHARE : all;
}

/* A part in HOARD_SHARE of what layered_leave() tells; see engine_balance(). */
size_t session_memory_for(size_t layers)
{
	size_t left = layers * HOARD_SHARE;

	return left + left / (SHAKING_SHARE - 1) + HOARD_SHARE;
}
