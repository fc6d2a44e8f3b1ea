/* SPDX-License-Identifier: MIT */
/*
 * Shortest remaining processing time first, over several paths: of the most urgent connections
 * the one goes first that would be complete soonest if it were alone. That is when the last of
 * what it has left would arrive over all paths, and no sooner than what it has in flight: a
 * connection whose last bytes are on a far path need not hurry. With --path-policy ecf this is
 * SRPT-ECF: the best order of completions that there is, where all sizes are known and paths
 * are constant.
 *
 * Connections of which nobody knows how much they have left come last among the equally urgent,
 * and share by turns. What goes before the last byte of a connection is all that those have left
 * that go first.
 *
 * The order is made when a connection has something to send that had nothing, or its size is
 * another one than was known. Between such times it stays: whoever goes first comes sooner to its
 * end than those behind it. Each decision looks at each connection that has something to send.
 * One without an outlook is one of those of which nobody knows.
 */
#include <math.h>

#include "../conn/conn.h"
#include "../path/forecast.h"
#include "../path/paths.h"
#include "sched.h"

enum { INSERT_STEPS = 8 };	/* of each connection, before they are merged */

/* The paths that work, the soonest first, as a connection finds them that is alone. */
struct alone {
	struct alone_on {
		const struct path *path;
		double delay;		/* until its first byte has arrived, s */
		double rate;		/* bytes a second */
	} on[PATHS_MAX];
	unsigned int n;
};

/* Bytes a second, as far as that is known: else what its windows allow. 0: not even that. */
static double rate_of(const struct forecast *f)
{
	if (f->rate > 0)
		return f->rate;
	return f->trip > 0 ? f->window / f->trip : 0;
}

static void add_path(struct alone *alone, const struct path *path, int64_t now)
{
	struct forecast f = forecast_of(path, now);
	double rate = rate_of(&f);
	struct alone_on it = { path, f.delay + f.behind / rate, rate };
	unsigned int i = alone->n;

	if (!(rate > 0))
		return;
	for (; i > 0 && alone->on[i - 1].delay > it.delay; i--)
		alone->on[i] = alone->on[i - 1];
	alone->on[i] = it;
	alone->n++;
}

static void find_paths(const struct path_choice *choice, struct alone *alone)
{
	const struct paths *paths = choice->paths;
	unsigned int i;

	alone->n = 0;
	for (i = 0; paths && i < paths->npaths; i++) {
		const struct path *path = &paths->path[i];

		if (path->npipes && paths_works(paths, path))
			add_path(alone, path, choice->now);
	}
}

/* In how many seconds @left bytes of @c would arrive. Over one path bytes do as well. */
static double takes(const struct alone *alone, const struct conn *c, double left)
{
	double rate = 0, weighted = 0, best = INFINITY;
	unsigned int i;

	for (i = 0; i < alone->n && alone->on[i].delay < best; i++) {
		const struct alone_on *it = &alone->on[i];

		if (!conn_may_use(c, it->path->number))
			continue;
		rate += it->rate;
		weighted += it->rate * it->delay;
		best = (left + weighted) / rate;
	}
	return rate > 0 ? best : left;
}

static double completes(const struct sched *s, const struct alone *alone,
			const struct conn *c)
{
	double in_flight = (double)(conn_outlook(c)->arrives_at - s->path.now) / 1e9;
	uint64_t left = conn_size(c);
	double at;

	if (left == UINT64_MAX)
		return INFINITY;
	at = takes(alone, c, (double)left);
	return s->path.paths && in_flight > at ? in_flight : at;
}

/* Its bytes, those that went among them. */
static uint64_t whole(const struct conn *c)
{
	uint64_t size = conn_size(c);

	return size < UINT64_MAX ? c->tx_bytes + size : UINT64_MAX;
}

/* Does @a go before @b, which came first? */
static bool is_before(const struct conn *a, const struct conn *b)
{
	if (a->urgency != b->urgency)
		return a->urgency > b->urgency;
	return conn_outlook(a)->completes < conn_outlook(b)->completes;
}

static struct conn *conn_at(const struct list *pos)
{
	return list_entry(pos, struct conn, turn);
}

/* To its place among those before it, which are in order: past how many of them. */
static size_t insert(struct sched *s, struct conn *c)
{
	struct list *pos = c->turn.prev;
	size_t passed = 0;

	for (; pos != &s->round && is_before(c, conn_at(pos)); passed++)
		pos = pos->prev;
	if (passed)
		list_move_tail(pos->next, &c->turn);
	return passed;
}

/*
 * Mostly one has another place than before, and finds it soon. But the sizes are what the other
 * end says: false, and they are in no order, where it costs more than so many steps for each.
 */
static bool insert_all(struct sched *s)
{
	size_t left = (size_t)INSERT_STEPS * s->ready;
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->round) {
		size_t passed = insert(s, conn_at(pos));

		if (passed > left)
			return false;
		left -= passed;
	}
	return true;
}

/* The first of @line, as many as are in order, become @run. */
static void take_run(struct list *line, struct list *run)
{
	list_init(run);
	while (!list_empty(line) &&
	       (list_empty(run) || !is_before(conn_at(line->next), conn_at(run->prev))))
		list_move_tail(run, line->next);
}

/* Behind all of @line; of equals @a's come first. */
static void merge(struct list *line, struct list *a, struct list *b)
{
	while (!list_empty(a) || !list_empty(b)) {
		bool second = list_empty(a) ||
			      (!list_empty(b) &&
			       is_before(conn_at(b->next), conn_at(a->next)));

		list_move_tail(line, second ? b->next : a->next);
	}
}

/* Two runs after the other, until there is one. */
static void merge_all(struct sched *s)
{
	unsigned int pairs;
	struct list merged, a, b;

	do {
		list_init(&merged);
		for (pairs = 0; !list_empty(&s->round); pairs++) {
			take_run(&s->round, &a);
			take_run(&s->round, &b);
			merge(&merged, &a, &b);
		}
		while (!list_empty(&merged))
			list_move_tail(&s->round, merged.next);
	} while (pairs > 1);
}

static uint64_t add(uint64_t sum, uint64_t left)
{
	return left < UINT64_MAX - sum ? sum + left : UINT64_MAX;
}

static void put_in_order(struct sched *s)
{
	struct list *pos, *tmp;
	struct alone alone;

	find_paths(&s->path, &alone);
	list_each(pos, tmp, &s->round) {
		struct conn *c = conn_at(pos);

		if (c->outlook) {
			c->outlook->completes = completes(s, &alone, c);
			c->outlook->whole = whole(c);
		}
	}
	if (!insert_all(s))
		merge_all(s);
	s->ordered = true;
}

/* Is anybody's size another one than when the order was made? */
static bool has_changed(const struct sched *s)
{
	const struct list *pos = s->round.next;

	for (; pos != &s->round; pos = pos->next) {
		const struct conn *c = conn_at(pos);

		if (conn_outlook(c)->whole != whole(c))
			return true;
	}
	return false;
}

static void look(struct sched *s)
{
	const struct list *pos;
	uint64_t sum = 0;

	if (!s->ordered || has_changed(s))
		put_in_order(s);
	for (pos = s->round.next; pos != &s->round; pos = pos->next) {
		struct conn *c = conn_at(pos);

		sum = add(sum, conn_left(c));
		if (c->outlook)
			c->outlook->before = sum;
	}
	s->looked = true;
}

static void srpt_ready(struct sched *s, struct conn *c, int64_t now)
{
	sched_line_up(s, c, now);
	s->ordered = s->looked = false;
}

static void srpt_idle(struct sched *s, struct conn *c, int64_t now)
{
	sched_leave_line(s, c, now);
	s->looked = false;
}

static struct sched_choice srpt_next(struct sched *s, struct pipe *p,
				     size_t room, int64_t now)
{
	struct sched_choice choice = { .act = SCHED_WAIT };
	struct conn *c;

	(void)now;
	if (!s->looked)
		look(s);
	c = sched_first_for(s, p);
	if (!c)
		return choice;
	choice.act = SCHED_NEW;
	choice.conn = c;
	choice.ahead = conn_size(c) < UINT64_MAX;
	choice.budget = choice.ahead ? room : sched_turn(s, room);
	if (choice.budget > room || s->ready == 1)
		choice.budget = room;
	return choice;
}

/* Of those whose size is not known the next one has its turn. */
static void srpt_sent(struct sched *s, struct conn *c, size_t bytes)
{
	(void)bytes;
	s->looked = false;
	if (!c->ready || conn_size(c) < UINT64_MAX)
		return;
	list_move_tail(&s->round, &c->turn);
	insert(s, c);
}

static void srpt_gave(struct sched *s, struct conn *c, const struct path *path,
		      size_t bytes)
{
	int64_t at = path_arrives_at(path, s->path.now, bytes);
	struct outlook *o = conn_outlook_new(c);

	if (o && at > o->arrives_at)
		o->arrives_at = at;
}

static uint64_t srpt_ahead(const struct sched *s, const struct conn *c)
{
	(void)s;
	return conn_outlook(c)->before;
}

const struct conn_policy sched_srpt = {
	.name = "srpt",
	.summary = "what would be complete first, by sizes that are known; else by turns, behind all of these",
	.ready = srpt_ready,
	.idle = srpt_idle,
	.next = srpt_next,
	.sent = srpt_sent,
	.gave = srpt_gave,
	.ahead = srpt_ahead,
	.by_size = true,
};
