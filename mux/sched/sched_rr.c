/* SPDX-License-Identifier: MIT */
/*
 * A message of each connection in turn, whatever its size: with --path-policy ecf this is SA-ECF,
 * which published figures compare with.
 */
#include "../conn/conn.h"
#include "sched.h"

static struct sched_choice rr_next(struct sched *s, struct pipe *p,
				   size_t room, int64_t now)
{
	struct sched_choice choice = { .act = SCHED_WAIT };
	struct conn *c = sched_first_for(s, p);

	(void)now;
	if (!c)
		return choice;
	choice.act = SCHED_NEW;
	choice.conn = c;
	choice.budget = s->ready == 1 ? room : 1;	/* in whole messages */
	return choice;
}

/* Whoever had a turn before and was kept off this path has missed it. */
static void miss_turns(struct sched *s, const struct conn *c)
{
	while (s->round.next != &c->turn)
		list_move_tail(&s->round, s->round.next);
}

static void rr_sent(struct sched *s, struct conn *c, size_t bytes)
{
	(void)bytes;
	if (!c->ready)
		return;
	if (s->path.paths && s->path.policy->takes)
		miss_turns(s, c);
	list_move_tail(&s->round, &c->turn);
}

/* The others take turns: as many bytes of each, or all that it has, go before its last one. */
static uint64_t rr_ahead(const struct sched *s, const struct conn *c)
{
	uint64_t left = conn_left(c), sum = 0;
	const struct list *pos;

	for (pos = s->round.next; pos != &s->round; pos = pos->next) {
		uint64_t other = conn_left(list_entry(pos, struct conn, turn));

		if (other > left)
			other = left;
		if (other > UINT64_MAX - sum)
			return UINT64_MAX;
		sum += other;
	}
	return sum;
}

const struct conn_policy sched_turns = {
	.name = "rr",
	.summary = "a message of each in turn",
	.ready = sched_line_up,
	.idle = sched_leave_line,
	.next = rr_next,
	.sent = rr_sent,
	.ahead = rr_ahead,
};
