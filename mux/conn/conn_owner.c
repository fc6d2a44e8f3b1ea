/* SPDX-License-Identifier: MIT */
#include "conn_owner.h"

#include "conn.h"

/* One, since others have their turn; and then it asks for its own again. */
static void reap(struct task *t)
{
	struct conn_owner *owner = container_of(t, struct conn_owner, reap);
	struct conn *c;

	if (list_empty(&owner->done))
		return;		/* freed before its turn came */
	c = list_first(&owner->done, struct conn, member);
	list_del(&c->member);
	if (!list_empty(&owner->done))
		loop_later(owner->loop, t);
	owner->ops->gone(c);
}

void conn_owner_reap(struct conn *c)
{
	list_move_tail(&c->owner->done, &c->member);
	loop_later(c->owner->loop, &c->owner->reap);
}

void conn_owner_init(struct conn_owner *owner, struct loop *loop,
		     struct slab *conns, const struct conn_ops *ops,
		     const struct conn_speech *speech, void *self)
{
	owner->loop = loop;
	owner->conns = conns;
	owner->ops = ops;
	owner->speech = speech;
	owner->self = self;
	owner->records = false;
	list_init(&owner->sockets);
	list_init(&owner->done);
	loop_task_init(&owner->reap, reap);
}

void conn_owner_fini(struct conn_owner *owner)
{
	while (!list_empty(&owner->done))
		conn_free(list_first(&owner->done, struct conn, member));
	loop_task_stop(&owner->reap);
}
