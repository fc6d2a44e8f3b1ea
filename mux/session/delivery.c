/* SPDX-License-Identifier: MIT */
#include "delivery.h"

#include "../conn/conn.h"
#include "session_inside.h"

static void deliver(struct session *s, struct delivery *d)
{
	conn_deliver(d->conn, d->iov, d->n, d->len);
	/* What was not taken is in its queue now. */
	d->len = 0;
	if (s->dialect->delivered)
		s->dialect->delivered(s, d->conn);
}

void delivery_flush(struct session *s)
{
	struct delivery *d = &s->in.delivery;

	if (d->conn && d->n)
		deliver(s, d);
	while (d->early) {
		struct reorder_early *early = d->early;

		d->early = early->chain;
		reorder_release(early);
	}
	d->conn = NULL;
	d->n = 0;
}

void delivery_turn(struct session *s, struct conn *c)
{
	if (s->in.delivery.conn != c || s->in.delivery.n == DELIVERY_IOV)
		delivery_flush(s);
	s->in.delivery.conn = c;
}

void delivery_add(struct session *s, struct conn *c, const uint8_t *body,
		  size_t len)
{
	struct delivery *d = &s->in.delivery;

	delivery_turn(s, c);
	d->iov[d->n].iov_base = (void *)(uintptr_t)body;
	d->iov[d->n++].iov_len = len;
	d->len += len;
	c->rx_bytes += len;
}

void delivery_keep(struct session *s, struct reorder_early *early)
{
	early->chain = s->in.delivery.early;
	s->in.delivery.early = early;
}

void delivery_waited(struct session *s, struct conn *c, const struct reorder *q,
		     const struct reorder_early *early)
{
	int64_t ns = loop_now(s->engine->loop) - early->came_at;

	if (c->owner->records)
		waits_taken(&c->waits, q, early, ns / NS_PER_US);
}
