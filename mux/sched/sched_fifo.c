/* SPDX-License-Identifier: MIT */
/*
 * First come, first served: a connection sends until it has nothing more.
 */
#include "../conn/conn.h"
#include "sched.h"

static struct sched_choice fifo_next(struct sched *s, struct pipe *p,
				     size_t room, int64_t now)
{
	struct sched_choice choice = { .act = SCHED_WAIT };
	struct conn *c = sched_first_for(s, p);

	(void)now;
	if (!c)
		return choice;
	choice.act = SCHED_NEW;
	choice.conn = c;
	choice.budget = room;
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
	.ready = sched_line_up,
	.idle = sched_leave_line,
	.next = fifo_next,
	.sent = fifo_sent,
};
