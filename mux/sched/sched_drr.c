/* SPDX-License-Identifier: MIT */
/*
 * Deficit round robin over connections (Shreedhar and Varghese), and as in
 * fq_codel one that just became active is served ahead of the round, for a
 * quantum. One that falls silent keeps its place until its turn comes; if it
 * speaks again before, it is served ahead for what it left of its quantum. So
 * talking in small pieces buys no more than one quantum a round, and who needs
 * less than that never waits for a round to end.
 */
#include "../base/sizes.h"
#include "../conn/conn.h"
#include "sched.h"

/*
 * The credit of a turn: a quantum on slow paths, where turns must be short for
 * the others' sake; on fast ones a share of what the pipe takes in one system call, or so
 * much.
 */
enum { QUANTUM = 8192, TURN_LEAST = 65536 };

/* More than any pipe takes in a turn: a deficit stays within this many bytes and one message. */
enum { TURN_MOST = 1 << 30 };

static void drr_ready(struct sched *s, struct conn *c, int64_t now)
{
	(void)now;
	if (list_empty(&c->turn)) {
		c->deficit = QUANTUM;
		c->in_turn = false;
		list_add_tail(&s->round, &c->turn);
	}
	if (c->deficit > 0 && !c->in_turn)
		list_add_tail(&s->newcomers, &c->ahead);
}

static void drr_idle(struct sched *s, struct conn *c, int64_t now)
{
	(void)now;
	(void)s;
	list_del(&c->ahead);
}

static struct conn *first_newcomer(struct sched *s, const struct pipe *p)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->newcomers) {
		struct conn *c = list_entry(pos, struct conn, ahead);

		if (c->deficit <= 0 || c->in_turn)
			list_del(&c->ahead);
		else if (sched_carries(s, p, c))
			return c;
	}
	return NULL;
}

/* Credit is given when a turn begins, and spent before the next one's does. */
static bool has_turn(struct conn *c, int32_t credit)
{
	if (!c->in_turn) {
		c->in_turn = true;
		c->deficit = c->deficit < 0 ? c->deficit + credit : credit;
	}
	if (c->deficit > 0)
		return true;
	c->in_turn = false;
	return false;
}

/* Where many wait, a round shall not take long. */
size_t sched_turn(const struct sched *s, size_t room)
{
	size_t share = room / (s->ready ? s->ready : 1);

	if (share < TURN_LEAST)
		share = room < TURN_LEAST ? room : TURN_LEAST;
	return share > QUANTUM ? share : QUANTUM;
}

static struct conn *first_in_turn(struct sched *s, const struct pipe *p,
				  size_t room)
{
	int32_t credit = (int32_t)size_least(sched_turn(s, room), TURN_MOST);
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->round) {
		struct conn *c = list_entry(pos, struct conn, turn);

		if (!c->ready) {
			list_del(&c->turn);
			continue;
		}
		if (!sched_carries(s, p, c))
			continue;
		if (has_turn(c, credit))
			return c;
		list_move_tail(&s->round, &c->turn);
		if (tmp == &s->round)	/* its turn again, at once? */
			tmp = s->round.next;
	}
	return NULL;
}

static struct sched_choice drr_next(struct sched *s, struct pipe *p,
				    size_t room, int64_t now)
{
	struct sched_choice choice = { .act = SCHED_WAIT };
	struct conn *c = first_newcomer(s, p);

	(void)now;
	if (!c)
		c = first_in_turn(s, p, room);
	if (!c)
		return choice;
	choice.act = SCHED_NEW;
	choice.conn = c;
	choice.ahead = !c->in_turn;
	choice.budget = (size_t)c->deficit;
	/* No crumbs: a message may overdraw. Alone, there is nobody to share with. */
	if (choice.budget < WIRE_PAYLOAD_MAX)
		choice.budget = WIRE_PAYLOAD_MAX;
	if (choice.budget > room || s->ready == 1)
		choice.budget = room;
	return choice;
}

static void drr_sent(struct sched *s, struct conn *c, size_t bytes)
{
	c->deficit -= (int32_t)bytes;
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
