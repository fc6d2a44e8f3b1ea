/* SPDX-License-Identifier: MIT */
/*
 * Deficit round robin over connections (Shreedhar and Varghese), with the two
 * lists of fq_codel: a connection that just became active is served ahead of
 * the round, once, for one quantum. One that fell silent keeps its place in
 * the round until its turn comes, so that talking in small pieces buys no more
 * than one quantum a round.
 */
#include "conn.h"
#include "sched.h"

/*
 * The credit of a turn: a quantum on slow paths, where turns must be short for
 * the others' sake; on fast ones what the pipe takes in one system call.
 */
enum { QUANTUM = 8192 };

static void drr_ready(struct sched *s, struct conn *c)
{
	if (!list_empty(&c->turn))
		return;		/* it kept its place */
	c->deficit = QUANTUM;
	list_add_tail(&s->fresh, &c->turn);
}

static void drr_idle(struct sched *s, struct conn *c)
{
	list_move_tail(&s->round, &c->turn);
}

/* The next that may send and has credit left; credit is given in passing. */
static struct conn *first_of(struct sched *s, struct list *head,
			     const struct pipe *p, size_t room)
{
	int64_t credit = room > QUANTUM ? (int64_t)room : QUANTUM;
	struct list *pos, *tmp;

	list_each(pos, tmp, head) {
		struct conn *c = list_entry(pos, struct conn, turn);

		if (!c->ready) {
			list_del(&c->turn);
			continue;
		}
		if (!sched_carries(s, p, c))
			continue;
		if (c->deficit > 0)
			return c;
		c->deficit += credit;
		list_move_tail(&s->round, &c->turn);
		if (tmp == head)	/* it may be its turn again at once */
			tmp = head->next;
	}
	return NULL;
}

static struct sched_choice drr_next(struct sched *s, struct pipe *p,
				    size_t room, int64_t now)
{
	struct sched_choice choice = { .act = SCHED_WAIT };
	struct conn *c = first_of(s, &s->fresh, p, room);

	(void)now;
	if (!c)
		c = first_of(s, &s->round, p, room);
	if (!c)
		return choice;
	choice.act = SCHED_NEW;
	choice.conn = c;
	choice.budget = (size_t)c->deficit;
	/* No crumbs: a message may overdraw. Alone, there is nobody to share with. */
	if (choice.budget < WIRE_PAYLOAD_MAX)
		choice.budget = WIRE_PAYLOAD_MAX;
	if (choice.budget > room || s->ready == 1)
		choice.budget = room;
	return choice;
}

static void drr_sent(struct sched *s, struct conn *c, size_t bytes, bool more)
{
	(void)more;
	c->deficit -= (int64_t)bytes;
	if (s->ready == 1 && c->deficit < 0)
		c->deficit = 0;
}

const struct conn_policy sched_drr = {
	.name = "drr",
	.summary = "deficit round robin, newly active first",
	.ready = drr_ready,
	.idle = drr_idle,
	.next = drr_next,
	.sent = drr_sent,
};
