/* SPDX-License-Identifier: MIT */
/*
 * A chunk: what a connection had ready, cut into messages that have their numbers. One path takes
 * them from the front, another one from the end, until the two meet. All of them are sent, whatever
 * becomes of the connection: a number without its message would stop all that come behind it.
 */
#ifndef TM3_CHUNK_H
#define TM3_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunk {
	uint32_t first;		/* the number of its first message */
	size_t payload;		/* bytes of each but the last one */
	size_t size;		/* of all */
	size_t front, back;	/* what is not sent yet lies between these */
	uint8_t bytes[];
};

struct chunk_part {
	uint32_t number;
	const uint8_t *bytes;
	size_t len;
};

/* For @size bytes, which the caller reads; or NULL. */
struct chunk *chunk_new(size_t size, size_t payload);

static inline size_t chunk_left(const struct chunk *chunk)
{
	return chunk->back - chunk->front;
}

static inline uint32_t chunk_messages(const struct chunk *chunk)
{
	return (uint32_t)((chunk->size + chunk->payload - 1) / chunk->payload);
}

/* The message at the front, or the one at the end, which counts as sent then. One is left. */
struct chunk_part chunk_take(struct chunk *chunk, bool from_end);

#endif
