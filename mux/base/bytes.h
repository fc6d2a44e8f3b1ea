/* SPDX-License-Identifier: MIT */
/*
 * A queue of bytes in chunks: what is in order for an application that does
 * not take it yet. Empty, it owns no memory. Chunks grow with the queue, so
 * that one waiting byte does not cost a page.
 */
#ifndef TM3_BYTES_H
#define TM3_BYTES_H

#include <stddef.h>
#include <sys/uio.h>

struct bytes_chunk;

struct bytes {
	struct bytes_chunk *head, *tail;
	size_t len;		/* bytes waiting */
};

int bytes_append(struct bytes *q, const void *data, size_t len);

/* Fills up to @max entries of @iov with the front of the queue. */
int bytes_peek(const struct bytes *q, struct iovec *iov, int max);
void bytes_consume(struct bytes *q, size_t len);
void bytes_clear(struct bytes *q);

#endif
