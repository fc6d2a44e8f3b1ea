/* SPDX-License-Identifier: MIT */
#include "slab.h"

#include <stdlib.h>
#include <string.h>

/* By a sanitizer that is to see what is used after it was freed, or lost. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#ifdef __SANITIZE_ADDRESS__
#define WATCHED true
#else
#define WATCHED __has_feature(address_sanitizer)
#endif

/* The byte of its first object is 1, so that one that somebody set to 0 leads out of it. */
struct block {
	struct list node;	/* of slab->roomy, while it has room */
	void *free;		/* objects that were put back: each begins with the next one */
	uint8_t fresh;		/* the first that was never got */
	uint8_t used;
	_Alignas(max_align_t) uint8_t objects[];
};

void slab_prepare(struct slab *slab, size_t size, size_t place, uint8_t each)
{
	slab->size = (uint16_t)size;
	slab->place = (uint16_t)place;
	slab->each = each;
	if (WATCHED)
		slab->each = 1;
	list_init(&slab->roomy);
}

static struct block *block_new(struct slab *slab)
{
	struct block *b = malloc(sizeof(*b) + (size_t)slab->size * slab->each);

	if (!b)
		return NULL;
	b->free = NULL;
	b->fresh = b->used = 0;
	list_add_tail(&slab->roomy, &b->node);
	return b;
}

void *slab_get(struct slab *slab)
{
	struct block *b = list_empty(&slab->roomy) ?
		block_new(slab) : list_first(&slab->roomy, struct block, node);
	uint8_t *object, place;

	if (!b)
		return NULL;
	if (b->free) {
		object = b->free;
		memcpy(&b->free, object, sizeof(b->free));
		place = object[slab->place] - 1;
	} else {
		place = b->fresh++;
		object = b->objects + (size_t)place * slab->size;
	}
	if (++b->used == slab->each)
		list_del(&b->node);
	memset(object, 0, slab->size);
	object[slab->place] = place + 1;
	return object;
}

void slab_put(struct slab *slab, void *object)
{
	uint8_t *at = object;
	size_t place = (size_t)at[slab->place] - 1;
	struct block *b = container_of(at - place * slab->size, struct block,
				       objects);

	if (b->used-- == slab->each)
		list_add_tail(&slab->roomy, &b->node);
	memcpy(at, &b->free, sizeof(b->free));
	b->free = at;
	if (b->used)
		return;
	list_del(&b->node);
	free(b);
}
