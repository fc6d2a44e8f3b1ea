/* SPDX-License-Identifier: MIT */
#include "chunk.h"

#include <stdlib.h>

struct chunk *chunk_new(size_t size, size_t payload)
{
	struct chunk *chunk = malloc(sizeof(*chunk) + size);

	if (chunk)
		*chunk = (struct chunk){
			.payload = payload, .size = size, .back = size,
		};
	return chunk;
}

struct chunk_part chunk_take(struct chunk *chunk, bool from_end)
{
	/* Only behind the last message lies no other one's beginning. */
	size_t at = from_end ? (chunk->back - 1) / chunk->payload * chunk->payload :
			       chunk->front;
	size_t left = chunk->back - at;
	struct chunk_part part = {
		.number = chunk->first + (uint32_t)(at / chunk->payload),
		.bytes = chunk->bytes + at,
		.len = left < chunk->payload ? left : chunk->payload,
	};

	if (from_end)
		chunk->back = at;
	else
		chunk->front += part.len;
	return part;
}
