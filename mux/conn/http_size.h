/* SPDX-License-Identifier: MIT */
/*
 * How many bytes of an HTTP/1 answer are still to come, read from the bytes as they go by:
 * from Content-Length, or chunk by chunk, answer after answer on one connection. It looks and
 * changes nothing. What is no HTTP, or ends with the connection, has no size from there on; what
 * lies has a wrong one.
 *
 * No socket, no clock, no allocation.
 */
#ifndef TM3_HTTP_SIZE_H
#define TM3_HTTP_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_LINE = 64, HTTP_HEAD_MAX = 1 << 16 };

enum http_state {
	HTTP_STATUS,		/* in the first line of an answer, or before it */
	HTTP_FIELDS,
	HTTP_BODY,		/* so many bytes of it are to come: left */
	HTTP_CHUNK_SIZE,	/* in the line with the size of a chunk */
	HTTP_CHUNK,		/* the same of a chunk and the end of its line */
	HTTP_TRAILER,
	HTTP_NONE,		/* nothing is known, for good */
};

struct http_size {
	uint8_t state;		/* enum http_state */
	bool sized, chunked, wrong;	/* what the fields said so far */
	bool behind;		/* a body of a known size came before */
	uint16_t status;
	uint32_t head;		/* bytes of it so far */
	uint64_t left;
	uint8_t len;		/* of the line, as far as it is kept */
	char line[HTTP_LINE];	/* in small letters */
};

/* All zeros is the beginning of a connection. @bytes are the next. */
void http_size_feed(struct http_size *h, const uint8_t *bytes, size_t len);

/* Bytes that are known to come; 0: none are, or it is not known. */
uint64_t http_size_left(const struct http_size *h);

/*
 * What was said of a size and is not so: why nothing is known any more, or @ended: why not all came
 * before the end. NULL: nothing was.
 */
const char *http_size_fault(const struct http_size *h, bool ended);

/* Is an answer to begin, or has its head begun? */
static inline bool http_size_in_head(const struct http_size *h)
{
	return h->state == HTTP_STATUS || h->state == HTTP_FIELDS;
}

#endif
