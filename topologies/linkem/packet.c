/* SPDX-License-Identifier: MIT */
#include "packet.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_SLOTS = 128 };

struct chunk {
	struct chunk *next;
};

static size_t slot_size(const struct pool *pool)
{
	size_t size = sizeof(struct packet) + pool->frame_max;

	return (size + 63) & ~(size_t)63;
}

void pool_init(struct pool *pool, size_t frame_max, size_t memory_max)
{
	memset(pool, 0, sizeof(*pool));
	pool->frame_max = frame_max;
	pool->slots_max = memory_max / slot_size(pool);
}

void pool_fini(struct pool *pool)
{
	struct chunk *chunk = pool->chunks;

	while (chunk) {
		struct chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	memset(pool, 0, sizeof(*pool));
}

/* One more chunk of slots, written to so that the kernel gives the pages now. */
static void grow(struct pool *pool)
{
	size_t size = slot_size(pool);
	size_t room = pool->slots_max - pool->slots;
	size_t n = room < CHUNK_SLOTS ? room : CHUNK_SLOTS;
	struct chunk *chunk;
	char *slot;

	if (!n)
		return;
	chunk = aligned_alloc(64, 64 + n * size);
	if (!chunk)
		return;
	memset(chunk, 0, 64 + n * size);
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->slots += n;
	slot = (char *)chunk + 64;
	for (size_t i = 0; i < n; i++, slot += size) {
		struct packet *p = (struct packet *)slot;

		p->next = pool->free;
		pool->free = p;
	}
}

struct packet *pool_get(struct pool *pool)
{
	struct packet *p;

	if (!pool->free)
		grow(pool);
	p = pool->free;
	if (!p)
		return NULL;
	pool->free = p->next;
	pool->in_use++;
	memset(p, 0, sizeof(*p));
	return p;
}

void pool_put(struct pool *pool, struct packet *p)
{
	p->next = pool->free;
	pool->free = p;
	pool->in_use--;
}
