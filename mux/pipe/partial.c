/* SPDX-License-Identifier: MIT */
#include "partial.h"

#include <stdlib.h>
#include <string.h>

/* For the longest at once: the next part is likely to be of another length. */
static bool make_room(struct partial *partial, size_t most)
{
	if (partial->size >= most)
		return true;
	partial_fini(partial);
	partial->bytes = malloc(most);
	if (!partial->bytes)
		return false;
	partial->size = most;
	return true;
}

bool partial_set(struct partial *partial, const uint8_t *bytes, size_t len,
		 size_t most)
{
	partial->len = 0;
	if (!len)
		return true;
	if (!make_room(partial, most))
		return false;
	memcpy(partial->bytes, bytes, len);
	partial->len = len;
	partial->used = true;
	return true;
}

size_t partial_copy(const struct partial *partial, uint8_t *to)
{
	if (partial->len)
		memcpy(to, partial->bytes, partial->len);
	return partial->len;
}

bool partial_release(struct partial *partial)
{
	bool unused = partial->bytes && !partial->len && !partial->used;

	if (unused)
		partial_fini(partial);
	partial->used = false;
	return unused;
}

void partial_fini(struct partial *partial)
{
	free(partial->bytes);
	*partial = (struct partial){ 0 };
}
