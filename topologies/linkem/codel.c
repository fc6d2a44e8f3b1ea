/* SPDX-License-Identifier: MIT */
#include "codel.h"

#include <math.h>

static int64_t control_law(const struct codel *c, int64_t t)
{
	return t + (int64_t)((double)c->interval / sqrt(c->count));
}

/* dodequeue(): the head, and whether it may be dropped. */
static struct packet *pop(struct codel *c, struct queue *q, int64_t now,
			  bool *may_drop)
{
	struct packet *p = queue_pop(q);

	*may_drop = false;
	if (!p) {
		c->first_above = 0;
		return NULL;
	}
	if (now - p->entered < c->target || q->bytes <= c->mtu) {
		c->first_above = 0;
	} else if (!c->first_above) {
		c->first_above = now + c->interval;
	} else if (now >= c->first_above) {
		*may_drop = true;
	}
	return p;
}

static struct packet *go_on_dropping(struct codel *c, struct queue *q,
				     int64_t now, struct packet *p,
				     bool may_drop,
				     const struct codel_drop *drop)
{
	if (!may_drop) {
		c->dropping = false;
		return p;
	}
	while (now >= c->drop_next && c->dropping) {
		drop->drop(drop->arg, p);
		c->count++;
		p = pop(c, q, now, &may_drop);
		if (!may_drop)
			c->dropping = false;
		else
			c->drop_next = control_law(c, c->drop_next);
	}
	return p;
}

static struct packet *start_dropping(struct codel *c, struct queue *q,
				     int64_t now, struct packet *p,
				     const struct codel_drop *drop)
{
	uint32_t delta = c->count - c->last_count;
	bool may_drop;

	drop->drop(drop->arg, p);
	p = pop(c, q, now, &may_drop);
	c->dropping = true;
	/* Soon after the last time: go on near the rate that helped then. */
	if (delta > 1 && now - c->drop_next < 16 * c->interval)
		c->count = delta;
	else
		c->count = 1;
	c->drop_next = control_law(c, now);
	c->last_count = c->count;
	return p;
}

struct packet *codel_pop(struct codel *c, struct queue *q, int64_t now,
			 const struct codel_drop *drop)
{
	bool may_drop;
	struct packet *p = pop(c, q, now, &may_drop);

	if (!p) {
		c->dropping = false;
		return NULL;
	}
	if (c->dropping)
		return go_on_dropping(c, q, now, p, may_drop, drop);
	if (may_drop)
		return start_dropping(c, q, now, p, drop);
	return p;
}
