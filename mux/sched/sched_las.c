/* SPDX-License-Identifier: MIT */
/*
 * Least attained service first: who was served least so far goes first.
 *
 * A connection is young until it was served YOUNG bytes, and as good as new
 * again when it had nothing to send for a round trip, for then it may answer
 * another question. The young go ahead of the others: those that were served
 * less than SMALL first, then the others, in each class whoever came
 * first. (By turns, the objects of a page would all be complete at the same
 * time, and nothing would be on its way until the next ones were asked for.)
 * All others are equals, and share by deficit round robin.
 *
 * Whoever opens connection after connection would starve the others so. While
 * others wait, the young therefore live on a credit: what they send is taken
 * from it, and of what the others send SHARE times as much is added. So a page
 * goes ahead of a download altogether, and in the long run the others get a
 * quarter at least. What is sent again is of the others here.
 *
 * In the same way those that were served less than SMALL live on a credit of
 * their own while others of the young wait: answers of 4 KB without end leave an
 * object of 20 KB a quarter of what the young have.
 */
#include <string.h>

#include "../conn/conn.h"
#include "sched.h"

enum {
	SMALL = 4 << 10,	/* a small object */
	YOUNG = 64 << 10,	/* what a web object seldom exceeds */
	SHARE = 3,		/* young to others when there is no credit */
};

/* Of each class, while those behind it wait. */
static const int64_t credits[SCHED_CLASSES] = {
	SHARE * YOUNG,	/* no more than what one of the next class sends adds */
	1 << 20,	/* a page's bytes */
};

/* The shortest silence that makes young, where round trips are shorter. */
#define SILENCE (10 * NS_PER_MS)

static bool is_young(const struct conn *c)
{
	return c->served < YOUNG;
}

static void enter_class(struct sched *s, struct conn *c)
{
	list_add_tail(&s->young[c->served >= SMALL], &c->ahead);
	s->nyoung++;
}

static void las_ready(struct sched *s, struct conn *c, int64_t now)
{
	int64_t silence = s->round_trip > SILENCE ? s->round_trip : SILENCE;

	if (c->silent_since && now - c->silent_since >= silence)
		c->served = 0;
	if (!is_young(c)) {
		sched_drr.ready(s, c, now);
		return;
	}
	list_del(&c->turn);	/* it may have kept its place in the round */
	enter_class(s, c);
}

static void las_idle(struct sched *s, struct conn *c, int64_t now)
{
	c->silent_since = now;
	if (!is_young(c)) {
		sched_drr.idle(s, c, now);
		return;
	}
	list_del(&c->ahead);
	s->nyoung--;
}

static struct conn *first_of(struct sched *s, unsigned int class,
			     const struct pipe *p)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->young[class]) {
		struct conn *c = list_entry(pos, struct conn, ahead);

		if (sched_carries(s, p, c))
			return c;
	}
	return NULL;
}

static struct conn *first_young(struct sched *s, const struct pipe *p)
{
	unsigned int class = s->credit[0] <= 0;
	struct conn *c = first_of(s, class, p);

	return c ? c : first_of(s, !class, p);
}

/* No further than to the end of its class, but a whole message. */
static size_t budget_of(const struct sched *s, const struct conn *c,
			size_t room)
{
	size_t end = c->served < SMALL ? SMALL : YOUNG;
	size_t budget = end - c->served;

	if (budget < WIRE_PAYLOAD_MAX)
		budget = WIRE_PAYLOAD_MAX;
	return budget > room || s->ready == 1 ? room : budget;
}

static bool others_wait(const struct sched *s)
{
	return s->again || s->ready > s->nyoung;
}

static struct sched_choice las_next(struct sched *s, struct pipe *p,
				    size_t room, int64_t now)
{
	struct sched_choice choice = { .act = SCHED_WAIT };
	bool ahead = !others_wait(s) || s->credit[1] > 0;
	struct conn *c;

	if (!ahead) {
		choice = sched_drr.next(s, p, room, now);
		if (choice.act != SCHED_WAIT)
			return choice;
	}
	c = first_young(s, p);
	if (!c)
		return sched_drr.next(s, p, room, now);
	choice.act = SCHED_NEW;
	choice.conn = c;
	choice.ahead = ahead;
	choice.budget = budget_of(s, c, room);
	return choice;
}

/* To the class that it has grown into. */
static void move_on(struct sched *s, struct conn *c)
{
	list_del(&c->ahead);
	s->nyoung--;
	if (is_young(c))
		enter_class(s, c);
	else
		sched_drr.ready(s, c, 0);	/* it needs no clock */
}

/*
 * Nobody owes more than what one of the young sends: of those that wait all may be bound to paths
 * that carry none of them, for however long.
 */
static void add_credit(struct sched *s, unsigned int class, int64_t bytes)
{
	s->credit[class] += bytes;
	if (s->credit[class] > credits[class])
		s->credit[class] = credits[class];
	if (s->credit[class] < -YOUNG)
		s->credit[class] = -YOUNG;
}

/* What one of the young sends it takes from those that are behind it and wait. */
static void account(struct sched *s, bool small, int64_t bytes)
{
	if (others_wait(s))
		add_credit(s, 1, -bytes);
	if (!small)
		add_credit(s, 0, SHARE * bytes);
	else if (!list_empty(&s->young[1]))
		add_credit(s, 0, -bytes);
}

static void las_sent(struct sched *s, struct conn *c, size_t bytes)
{
	bool was_young = is_young(c), was_small = c->served < SMALL;

	if (!was_young) {
		add_credit(s, 1, SHARE * (int64_t)bytes);
		sched_drr.sent(s, c, bytes);
		return;
	}
	c->served += (uint32_t)bytes;
	account(s, was_small, (int64_t)bytes);
	/* One that fell silent by this run has left its class already. */
	if (c->ready && (!is_young(c) || was_small != (c->served < SMALL)))
		move_on(s, c);
}

static void las_sent_again(struct sched *s, size_t bytes)
{
	add_credit(s, 1, SHARE * (int64_t)bytes);
}

static void las_init(struct sched *s)
{
	memcpy(s->credit, credits, sizeof(s->credit));
}

const struct conn_policy sched_las = {
	.name = "las",
	.summary = "least attained service first: small objects ahead of large ones, these by drr",
	.init = las_init,
	.ready = las_ready,
	.idle = las_idle,
	.next = las_next,
	.sent = las_sent,
	.sent_again = las_sent_again,
};
