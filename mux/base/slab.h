/* SPDX-License-Identifier: MIT */
/*
 * Many objects of one size, made and freed one by one, side by side in blocks: malloc() adds
 * 8 to 24 bytes to each.
 *
 * An object has a byte for its place in its block, which nobody else writes, and not among its
 * first 8. A block is freed with its last object.
 */
#ifndef TM3_SLAB_H
#define TM3_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include "list.h"

struct slab {
	uint16_t size;		/* of an object */
	uint16_t place;		/* where its byte is */
	uint8_t each;		/* objects of a block */
	struct list roomy;	/* blocks that have room */
};

/* For objects of @type, whose byte is @member, @each of them in a block. */
#define slab_init(slab, type, member, each) \
	slab_prepare(slab, sizeof(type), offsetof(type, member), each)

/* @each: up to 254 */
void slab_prepare(struct slab *slab, size_t size, size_t place, uint8_t each);

/* An object of zeros; NULL: no memory. */
void *slab_get(struct slab *slab);
void slab_put(struct slab *slab, void *object);

#endif
