/* SPDX-License-Identifier: MIT */
/*
 * How much a connection has still to send, as far as that can be seen: by what its socket holds,
 * and by what an HTTP server says in the head of an answer.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "../base/sock.h"
#include "conn.h"
#include "http_size.h"

enum {
	BRIM_PART = 2,	/* the other end hears late of room, and fills it late */
	HEAD_LOOK = 4096,	/* bytes; most heads are shorter */
};

void conn_read_sizes(struct conn *c)
{
	if (!c->http)
		c->http = calloc(1, sizeof(*c->http));
}

/* By what @h knows of it. */
static void forget(struct conn *c, const struct http_size *h, bool over)
{
	const char *fault = http_size_fault(h, over);

	free(c->http);
	c->http = NULL;
	if (fault && c->owner->ops->missized)
		c->owner->ops->missized(c, fault);
}

/* The head of an answer says how much it is before any of it is sent. */
static void look_ahead(struct conn *c)
{
	struct http_size ahead = *c->http;
	uint8_t bytes[HEAD_LOOK];
	ssize_t n = recv(c->watch.fd, bytes, sizeof(bytes),
			 MSG_PEEK | MSG_DONTWAIT);

	if (n <= 0)
		return;
	http_size_feed(&ahead, bytes, (size_t)n);
	if (http_size_left(&ahead))
		conn_tell_size(c, conn_cut_left(c) + (uint64_t)n +
				  http_size_left(&ahead));
	else if (ahead.state == HTTP_NONE)
		forget(c, &ahead, false);
}

void conn_measure(struct conn *c)
{
	c->ready_to = c->tx_bytes + sock_unread(c->watch.fd) + conn_cut_left(c);
	c->brim = sock_window(c->watch.fd) / BRIM_PART;
	if (c->http && http_size_in_head(c->http))
		look_ahead(c);
}

void conn_passes(struct conn *c, const struct iovec *iov, int n, size_t len)
{
	bool begins;
	int i;

	if (!c->http)
		return;
	for (i = 0; i < n && len; i++) {
		size_t part = len < iov[i].iov_len ? len : iov[i].iov_len;

		http_size_feed(c->http, iov[i].iov_base, part);
		len -= part;
	}
	begins = http_size_in_head(c->http);
	if (c->http->state == HTTP_NONE)
		forget(c, c->http, false);
	else if (http_size_left(c->http))
		conn_tell_size(c, conn_cut_left(c) + http_size_left(c->http));
	else if (begins && c->readable)
		look_ahead(c);
}

void conn_size_ends(struct conn *c)
{
	if (c->http)
		forget(c, c->http, true);
}
