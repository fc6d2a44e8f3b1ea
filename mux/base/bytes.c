/* SPDX-License-Identifier: MIT */
#include "bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_MIN = 256, CHUNK_MAX = 128 * 1024 };

struct bytes_chunk {
	struct bytes_chunk *next;
	size_t start, end, size;
	unsigned char data[];
};

/* As much room again as is waiting already, within reason. */
static struct bytes_chunk *chunk_new(const struct bytes *q, size_t len)
{
	size_t size = q->len;
	struct bytes_chunk *chunk;

	if (size < CHUNK_MIN)
		size = CHUNK_MIN;
	if (size > CHUNK_MAX)
		size = CHUNK_MAX;
	if (size < len)
		size = len;
	chunk = malloc(sizeof(*chunk) + size);
	if (!chunk)
		return NULL;
	chunk->next = NULL;
	chunk->start = chunk->end = 0;
	chunk->size = size;
	return chunk;
}

int bytes_append(struct bytes *q, const void *data, size_t len)
{
	struct bytes_chunk *tail = q->tail;
	struct bytes_chunk *more;
	size_t room = tail ? tail->size - tail->end : 0;
	size_t first = len < room ? len : room;

	if (first < len) {
		more = chunk_new(q, len - first);
		if (!more)
			return -ENOMEM;
		memcpy(more->data, (const char *)data + first, len - first);
		more->end = len - first;
		if (tail)
			tail->next = more;
		else
			q->head = more;
		q->tail = more;
	}
	if (first) {
		memcpy(tail->data + tail->end, data, first);
		tail->end += first;
	}
	q->len += len;
	return 0;
}

int bytes_peek(const struct bytes *q, struct iovec *iov, int max)
{
	struct bytes_chunk *chunk;
	int n = 0;

	for (chunk = q->head; chunk && n < max; chunk = chunk->next) {
		iov[n].iov_base = chunk->data + chunk->start;
		iov[n++].iov_len = chunk->end - chunk->start;
	}
	return n;
}

void bytes_consume(struct bytes *q, size_t len)
{
	q->len -= len;
	while (q->head) {
		struct bytes_chunk *chunk = q->head;
		size_t here = chunk->end - chunk->start;

		if (len < here) {
			chunk->start += len;
			return;
		}
		len -= here;
		q->head = chunk->next;
		free(chunk);
	}
	q->tail = NULL;
}

void bytes_clear(struct bytes *q)
{
	bytes_consume(q, q->len);
}
