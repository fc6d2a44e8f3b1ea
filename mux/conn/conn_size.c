/* SPDX-License-Identifier: MIT */
/*
 * How much a connection has still to send, as far as that can be seen: by what is in its socket,
 * and by what an HTTP server says in the head of an answer.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../base/sock.h"
#include "conn.h"
#include "http_size.h"

enum {
	BRIM_PART = 2,	/* the other end hears late of room, and fills it late */
	HEAD_LOOK = 4096,	/* bytes; most heads are shorter */
};

const struct outlook outlook_none = {
	.completes = INFINITY, .whole = UINT64_MAX, .before = UINT64_MAX,
};

struct outlook *conn_outlook_new(struct conn *c)
{
	if (c->outlook)
		return c->outlook;
	c->outlook = malloc(sizeof(*c->outlook));
	if (c->outlook)
		*c->outlook = outlook_none;
	return c->outlook;
}

void conn_outlook_free(struct conn *c)
{
	if (!c->outlook)
		return;
	free(c->outlook->http);
	free(c->outlook->chunk);
	free(c->outlook);
}

void conn_tell_size(struct conn *c, uint64_t bytes)
{
	struct outlook *o = bytes ? conn_outlook_new(c) : c->outlook;

	if (o)
		o->told_to = hint_end(bytes, c->tx_bytes);
}

void conn_read_sizes(struct conn *c)
{
	struct outlook *o = conn_outlook_new(c);

	if (o && !o->http)
		o->http = calloc(1, sizeof(*o->http));
}

/* By what @h knows of it. */
static void forget(struct conn *c, const struct http_size *h, bool ended)
{
	const char *fault = http_size_fault(h, ended);

	free(c->outlook->http);
	c->outlook->http = NULL;
	if (fault && c->owner->ops->missized)
		c->owner->ops->missized(c, fault);
}

/* The head of an answer says how much it is before any of it is sent. */
static void look_ahead(struct conn *c)
{
	struct http_size ahead = *c->outlook->http;
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

/*
 * An application whose own window is full, or small as it just began, is silent for a round trip
 * in the midst of what it writes.
 */
void conn_wrote(struct conn *c, int64_t now)
{
	struct outlook *o = conn_outlook_new(c);

	if (o)
		o->silent_at = now + sock_trip(c->watch.fd) * 3 / 2;
}

void conn_measure(struct conn *c)
{
	struct outlook *o = conn_outlook_new(c);

	if (!o)
		return;
	o->ready_to = c->tx_bytes + sock_unread(c->watch.fd) + conn_cut_left(c);
	o->brim = sock_window(c->watch.fd) / BRIM_PART;
	if (o->http && http_size_in_head(o->http))
		look_ahead(c);
}

void conn_passes(struct conn *c, const struct iovec *iov, int n, size_t len)
{
	struct http_size *http = conn_outlook(c)->http;
	int i;

	if (!http)
		return;
	for (i = 0; i < n && len; i++) {
		size_t part = len < iov[i].iov_len ? len : iov[i].iov_len;

		http_size_feed(http, iov[i].iov_base, part);
		len -= part;
	}
	if (http->state == HTTP_NONE)
		forget(c, http, false);
	else if (http_size_left(http))
		conn_tell_size(c, conn_cut_left(c) + http_size_left(http));
	else if (http_size_in_head(http) && c->readable)
		look_ahead(c);
}

void conn_size_ends(struct conn *c)
{
	if (conn_outlook(c)->http)
		forget(c, c->outlook->http, true);
}
