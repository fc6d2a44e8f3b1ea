/* SPDX-License-Identifier: MIT */
#include "flow_queue.h"

#include <stdlib.h>
#include <string.h>

#include "extended.h"

struct waiting {
	struct datagram_item item;
	uint8_t message[];
};

static struct session *session_of(const struct flow_queue *q)
{
	return q->conn->owner->self;
}

static void account(struct session *s, int64_t bytes)
{
	s->ext->flows_bytes += (size_t)bytes;
	inbound_charge(s, bytes);
}

static void drop(struct session *s, struct datagram_item *item)
{
	account(s, -(int64_t)datagram_memory(item));
	free(container_of(item, struct waiting, item));
}

void flow_queue_empty(struct flow_queue *q)
{
	struct datagram_item *item;

	list_del(&q->turn);
	while ((item = datagrams_take(&q->waiting)))
		drop(session_of(q), item);
}

void flow_queue_init(struct flow_queue *q, struct conn *c)
{
	q->conn = c;
	datagrams_init(&q->waiting);
	list_init(&q->turn);
}

/* --- in --- */

/* Until the batch has ended nobody sheds, and in it many may come. */
bool flow_queues_are_full(struct session *s)
{
	if (s->ext->flows_bytes <= FLOWS_MEMORY && !hoard_exceeded(&s->hoard))
		return false;
	s->counts.datagrams.crowded++;
	return true;
}

bool flow_queue_put(struct flow_queue *q, const uint8_t *message, size_t size)
{
	struct session *s = session_of(q);
	struct waiting *w = malloc(sizeof(*w) + size);
	struct datagram_item *oldest;

	if (!w) {
		s->counts.datagrams.crowded++;
		return false;
	}
	w->item.size = size;
	memcpy(w->message, message, size);
	account(s, (int64_t)datagram_memory(&w->item));
	oldest = datagrams_put(&q->waiting, &w->item,
			       loop_now(s->engine->loop));
	if (oldest) {
		s->counts.datagrams.crowded++;
		drop(s, oldest);
	}
	if (list_empty(&q->turn))
		list_add_tail(&s->ext->flows, &q->turn);
	s->out.datagrams = true;
	loop_after(s->engine->loop, &s->out.pump);
	return true;
}

/* --- out --- */

/* The pipe that its OPEN went on, as long as that may not have arrived; or NULL. */
static struct pipe *pipe_of_open(const struct session *s,
				 const struct flow_queue *q)
{
	const struct use *use = &q->conn->channel->use;
	unsigned int i;

	if (!use->opener || use->answered)
		return NULL;
	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];

		if (p->serial == q->conn->last_pipe && !p->relieved)
			return p;
	}
	return NULL;
}

static void drop_stale(struct session *s, struct flow_queue *q)
{
	int64_t now = loop_now(s->engine->loop);
	struct datagram_item *item;

	while ((item = datagrams_stale(&q->waiting, now))) {
		s->counts.datagrams.stale++;
		drop(s, item);
	}
	if (!datagrams_first(&q->waiting))
		list_del(&q->turn);
}

/*
 * The first whose pipe takes something decides where to; where none is, the first that
 * has to wait for its pipe.
 */
void flow_queues_look(struct session *s, struct view *view)
{
	struct list *pos, *tmp;

	view->datagram = false;
	view->datagram_on = NULL;
	list_each(pos, tmp, &s->ext->flows) {
		struct flow_queue *q = list_entry(pos, struct flow_queue, turn);
		struct pipe *p;

		drop_stale(s, q);
		if (list_empty(&q->turn) || q->conn->syn_pending)
			continue;
		p = pipe_of_open(s, q);
		if (p && view->datagram)
			continue;
		view->datagram = true;
		view->datagram_on = p;
		if (!p || pipe_room(p))
			break;
	}
	s->out.datagrams = !list_empty(&s->ext->flows);
}

static bool may_go_on(const struct session *s, const struct flow_queue *q,
		      const struct pipe *p)
{
	const struct pipe *only = pipe_of_open(s, q);

	return !q->conn->syn_pending && (!only || only == p);
}

/* The first datagram of @q goes. False: it does not fit in. */
static bool put_first(struct session *s, struct flow_queue *q, struct run *run,
		      size_t bytes)
{
	const struct datagram_item *first = datagrams_first(&q->waiting);
	struct datagram_item *item;

	if (run->size - run->len < first->size ||
	    (run->len && (run->len + first->size > bytes ||
			  run->messages == RUN_MESSAGES)))
		return false;
	item = datagrams_take(&q->waiting);
	memcpy(run->buf + run->len,
	       container_of(item, struct waiting, item)->message, item->size);
	run->len += item->size;
	run->messages++;
	run->uncounted++;
	q->conn->tx_messages++;
	s->counts.datagrams.sent++;
	drop(s, item);
	return true;
}

/*
 * One datagram of each flow that may go on @p, which then stands last. False: no more fit
 * in, or there are none.
 */
static bool put_round(struct session *s, struct pipe *p, struct run *run,
		      size_t bytes)
{
	struct list *flows = &s->ext->flows, *last = flows->prev;
	struct list *pos = flows->next, *next;
	bool any = false;

	for (; pos != flows; pos = next) {
		struct flow_queue *q = list_entry(pos, struct flow_queue, turn);
		bool was_last = pos == last;

		next = pos->next;
		if (may_go_on(s, q, p)) {
			if (!put_first(s, q, run, bytes))
				return false;
			any = true;
			list_del(&q->turn);
			if (datagrams_first(&q->waiting))
				list_add_tail(flows, &q->turn);
		}
		if (was_last)
			break;
	}
	return any;
}

struct run *flow_queues_frame(struct session *s, struct pipe *p, size_t bytes)
{
	struct run *run = run_get(&s->shared.pool);

	if (!run)
		return NULL;
	run->heard = true;
	while (put_round(s, p, run, bytes))
		;
	if (run->len)
		return run;
	run_put(&s->shared.pool, run);
	return NULL;
}

/* --- memory is short --- */

/* At least half of all goes, or so much that no more than @left remain. */
static void drop_large(struct session *s, size_t left)
{
	struct list *pos, *tmp;
	size_t all = 0, n = 0, least;

	list_each(pos, tmp, &s->ext->flows) {
		all += list_entry(pos, struct flow_queue, turn)->waiting.bytes;
		n++;
	}
	least = all / n / 2;
	list_each(pos, tmp, &s->ext->flows) {
		struct flow_queue *q = list_entry(pos, struct flow_queue, turn);

		if (s->ext->flows_bytes <= left)
			return;
		if (q->waiting.bytes < least)
			continue;
		s->counts.datagrams.crowded += q->waiting.count;
		flow_queue_empty(q);
	}
}

void flow_queues_shed(struct session *s, size_t bytes)
{
	size_t all = s->ext->flows_bytes;
	size_t left = all > bytes ? all - bytes : 0;

	while (s->ext->flows_bytes > left)
		drop_large(s, left);
}
