/* SPDX-License-Identifier: MIT */
/*
 * First come, first served: a connection sends until it has nothing more.
 */
#include "../conn/conn.h"
#include "sched.h"

static void fifo_ready(struct sched *s, struct conn *c, int64_t now)
{
	(void)now;
	list_add_tail(&s->round, &c->turn);
}

static void fifo_idle(struct sched *s, struct conn *c, int64_t now)
{
	(void)now;
	(void)s;
	list_del(&c->turn);
}

static struct sched_choice fifo_next(struct sched *s, struct pipe *p,
				     size_t room, int64_t now)
{
	struct sched_choice choice = { .act = SCHED_WAIT };
	struct list *pos, *tmp;

	(void)now;
	list_each(pos, tmp, &s->round) {
		struct conn *c = list_entry(pos, struct conn, turn);

		if (!sched_carries(s, p, c))
			continue;
		choice.act = SCHED_NEW;
		choice.conn = c;
		choice.budget = room;
		break;
	}
	return choice;
}

static void fifo_sent(struct sched *s, struct conn *c, size_t bytes)
{
	(void)s;
	(void)c;
	(void)bytes;
}

const struct conn_policy sched_fifo = {
	.name = "fifo",
	.summary = "first come, first served",
	.ready = fifo_ready,
	.idle = fifo_idle,
	.next = fifo_next,
	.sent = fifo_sent,
};
