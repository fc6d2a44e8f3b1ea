/* SPDX-License-Identifier: MIT */
/*
 * The part of a message that a read has brought, until the next read brings more of it. A session
 * that has carried a bulk would have 16 KiB of each pipe for ever: so the memory is there from when it
 * is first needed until it was not used for a while.
 */
#ifndef TM3_PARTIAL_H
#define TM3_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct partial {
	uint8_t *bytes;		/* NULL: no memory is held */
	size_t len, size;
	bool used;		/* since partial_release() was called last */
};

/* Copies @len bytes that may become @most, instead of what was there. False: no memory. */
bool partial_set(struct partial *partial, const uint8_t *bytes, size_t len,
		 size_t most);
/* Copies what there is to @to; it stays. How many bytes. */
size_t partial_copy(const struct partial *partial, uint8_t *to);
/* Frees the memory if nobody used it since the last call. Returns whether it did. */
bool partial_release(struct partial *partial);
void partial_fini(struct partial *partial);

#endif
