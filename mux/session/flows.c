/* SPDX-License-Identifier: MIT */
/*
 * Flows of datagrams. An OPEN, its SYNACK and the FINs of a flow go the way of any
 * connection's; this is about its datagrams.
 *
 * Who opened a flow may send before SYNACK has come. A DATAGRAM that overtakes the
 * OPEN is nobody's. So until then datagrams follow the OPEN, on its pipe, as long
 * as that is there.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../base/udp_out.h"
#include "../extension/datagrams.h"
#include "extended.h"
#include "flow.h"

struct flow {
	const struct flow_ops *ops;	/* NULL: its owner has let it go */
	void *owner;
	struct conn *conn;
	struct datagram_queue queue;
	size_t held;		/* by its owner, see flow_holds() */
	struct list turn;	/* in extended.flows while something waits */
	bool counted;		/* in extended.nflows */
	bool socket;		/* its owner has one for it */
	bool names;		/* all of it went to port 53 */
	int64_t passed_at;	/* something did */
	struct timer idle;	/* RP */
	struct udp_sender sender;
};

struct waiting {
	struct datagram_item item;
	uint8_t message[];
};

static struct session *session_of(const struct flow *f)
{
	return f->conn->owner;
}

void *flow_owner(const struct flow *f)
{
	return f->owner;
}

const struct destination *flow_to(const struct flow *f)
{
	return f->conn->dst;
}

const struct conn *flow_conn(const struct flow *f)
{
	return f->conn;
}

bool session_carries_flows(const struct session *s)
{
	return session_is_up(s) && s->ext &&
	       s->ext->welcome.features & WIRE_FEATURE_DATAGRAM;
}

/* Half of the places at RP, so that connections have the others. */
unsigned int flows_most(const struct session *s)
{
	unsigned int part = extended_places(s) / FLOWS_SHARE;

	if (part > FLOWS_MAX)
		part = FLOWS_MAX;
	else if (!part)
		part = 1;
	return s->ext->lp ? part : part * FLOWS_LEAVING;
}

bool flows_are_full(const struct session *s)
{
	return s->ext && s->ext->nflows >= flows_most(s);
}

/* --- from beginning to end --- */

static void account(struct session *s, int64_t bytes)
{
	s->ext->flows_bytes += (size_t)bytes;
	inbound_holds(s, bytes);
}

static void drop(struct session *s, struct datagram_item *item)
{
	account(s, -(int64_t)datagram_memory(item));
	free(container_of(item, struct waiting, item));
}

static void drop_all(struct session *s, struct flow *f)
{
	struct datagram_item *item;

	list_del(&f->turn);
	while ((item = datagrams_take(&f->queue)))
		drop(s, item);
}

void flow_holds(struct flow *f, int64_t bytes)
{
	f->held += (size_t)bytes;
	inbound_holds(session_of(f), bytes);
}

size_t flow_held(const struct flow *f)
{
	return f->held;
}

void flow_took_socket(struct flow *f)
{
	f->socket = true;
}

bool flow_has_socket(const struct flow *f)
{
	return f->socket;
}

/* Nothing more passes. What is left is for its connection to end. */
static void detach(struct flow *f)
{
	struct session *s = session_of(f);

	udp_out_flush_of(s->engine->udp_out, &f->sender);
	loop_timer_stop(s->engine->loop, &f->idle);
	drop_all(s, f);
	list_del(&f->conn->holding);
	s->ext->nflows -= f->counted;
	f->counted = f->socket = false;
}

static void tell_over(struct flow *f)
{
	const struct flow_ops *ops = f->ops;

	f->ops = NULL;
	detach(f);
	if (ops)
		ops->over(f);
}

void flow_close(struct flow *f)
{
	f->ops = NULL;
	detach(f);
	conn_end(f->conn, CONN_END_LOCAL_FIN);
}

void flow_refuse(struct flow *f, enum conn_end why)
{
	f->ops = NULL;
	detach(f);
	conn_refuse(f->conn, why);
}

void flows_closed(struct conn *c)
{
	tell_over(c->flow);
}

void flows_finished(struct conn *c)
{
	if (c->over)
		return;
	tell_over(c->flow);
	conn_end(c, CONN_END_PEER_FIN);
}

static void idle(struct timer *t)
{
	struct flow *f = container_of(t, struct flow, idle);
	struct loop *loop = session_of(f)->engine->loop;
	int64_t until = f->passed_at + datagrams_idle_limit(f->names);

	if (loop_now(loop) < until) {
		loop_timer_at(loop, t, until);
		return;
	}
	tell_over(f);
	conn_end(f->conn, CONN_END_IDLE);
}

static void unsent(struct udp_sender *by, int err)
{
	struct flow *f = container_of(by, struct flow, sender);

	flow_lost(f, FLOW_UNSENT);
	if (f->ops && f->ops->unsent)
		f->ops->unsent(f, err);
}

static struct flow *begin(struct session *s, struct conn *c)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->conn = c;
	c->flow = f;
	f->names = true;
	f->passed_at = loop_now(s->engine->loop);
	f->idle.fire = idle;
	udp_sender_init(&f->sender, unsent);
	datagrams_init(&f->queue);
	list_init(&f->turn);
	f->counted = true;
	s->ext->nflows++;
	return f;
}

bool flows_begin(struct session *s, struct conn *c)
{
	return begin(s, c) != NULL;
}

struct flow *flow_take(struct conn *c, const struct flow_ops *ops, void *owner)
{
	struct flow *f = c->flow;

	f->ops = ops;
	f->owner = owner;
	f->names = c->dst->kind == DESTINATION_NONE ||
		   c->dst->port == NAMES_PORT;
	loop_timer_in(session_of(f)->engine->loop, &f->idle,
		      datagrams_idle_limit(f->names));
	return f;
}

void flow_answer(struct flow *f)
{
	f->conn->connected_at = loop_clock();
	conn_ask(f->conn);
}

/* Half of the ids are for connections, however many flows come and go. */
static bool has_room(const struct session *s)
{
	return session_carries_flows(s) && !flows_are_full(s) &&
	       s->ext->nresting < WIRE_ID_LP_MAX / 2 && session_has_room(s);
}

struct flow *flow_open(struct session *s, const struct destination *to,
		       const struct flow_ops *ops, void *owner)
{
	struct conn *c = has_room(s) ? extended_open(s) : NULL;
	struct flow *f;

	if (!c)
		return NULL;
	c->ours = true;
	c->channel->flow_had_it = true;
	f = begin(s, c);
	if (!f || conn_set_destination(c, to) < 0) {
		conn_abort(c, CONN_END_LIMIT);
		return NULL;
	}
	f->ops = ops;
	f->owner = owner;
	conn_ask(c);
	return f;
}

/* --- out --- */

void flow_lost(struct flow *f, enum flow_loss why)
{
	struct stats_counts *n = &session_of(f)->counts;

	switch (why) {
	case FLOW_DENIED:
		n->datagrams.denied++;
		break;
	case FLOW_UNSENT:
		n->datagrams.unsent++;
		break;
	case FLOW_STRAY:
		n->datagrams.stray++;
		break;
	case FLOW_LARGE:
		n->datagrams.large++;
		break;
	}
}

/* As a message; NULL: it does not fit into one, or there is no memory. */
static struct waiting *frame(struct flow *f, const struct destination *at,
			     const uint8_t *payload, size_t len)
{
	uint8_t message[WIRE_MESSAGE_MAX];
	struct wire_ext what = { .type = WIRE_DATAGRAM };
	struct waiting *w;
	size_t size = 0;

	what.datagram.id = f->conn->id;
	if (at)
		what.datagram.at = *at;
	what.datagram.payload = payload;
	what.datagram.payload_len = (uint16_t)len;
	if (len <= WIRE_PAYLOAD_MAX)
		size = wire_ext_put(message, &what);
	if (!size) {
		flow_lost(f, FLOW_LARGE);
		return NULL;
	}
	w = malloc(sizeof(*w) + size);
	if (!w) {
		session_of(f)->counts.datagrams.crowded++;
		return NULL;
	}
	w->item.size = size;
	memcpy(w->message, message, size);
	f->conn->tx_bytes += len;
	return w;
}

void flow_send(struct flow *f, const struct destination *at,
	       const uint8_t *payload, size_t len)
{
	struct session *s = session_of(f);
	int64_t now = loop_now(s->engine->loop);
	struct datagram_item *oldest;
	struct waiting *w;

	/* Until the batch is over nobody sheds, and in it many may come. */
	if (s->ext->flows_bytes > FLOWS_MEMORY || hoard_is_over(&s->hoard)) {
		s->counts.datagrams.crowded++;
		return;
	}
	w = frame(f, at, payload, len);
	if (!w)
		return;
	f->passed_at = now;
	account(s, (int64_t)datagram_memory(&w->item));
	oldest = datagrams_put(&f->queue, &w->item, now);
	if (oldest) {
		s->counts.datagrams.crowded++;
		drop(s, oldest);
	}
	if (list_empty(&f->turn))
		list_add_tail(&s->ext->flows, &f->turn);
	s->out.datagrams = true;
	loop_after(s->engine->loop, &s->out.pump);
}

/* The pipe that its OPEN went on, as long as that may not have arrived; or NULL. */
static struct pipe *pipe_of_open(const struct session *s, const struct flow *f)
{
	const struct use *use = &f->conn->channel->use;
	unsigned int i;

	if (!use->opener || use->answered)
		return NULL;
	for (i = 0; i < s->path.npipes; i++) {
		struct pipe *p = s->path.pipes[i];

		if (p->serial == f->conn->last_pipe && !p->relieved)
			return p;
	}
	return NULL;
}

static void drop_stale(struct session *s, struct flow *f)
{
	int64_t now = loop_now(s->engine->loop);
	struct datagram_item *item;

	while ((item = datagrams_stale(&f->queue, now))) {
		s->counts.datagrams.stale++;
		drop(s, item);
	}
	if (!datagrams_first(&f->queue))
		list_del(&f->turn);
}

/*
 * The first whose pipe takes something decides where to; where none is, the first that
 * has to wait for its pipe.
 */
void flows_look(struct session *s, struct view *view)
{
	struct list *pos, *tmp;

	view->datagram = false;
	view->datagram_on = NULL;
	list_each(pos, tmp, &s->ext->flows) {
		struct flow *f = list_entry(pos, struct flow, turn);
		struct pipe *p;

		drop_stale(s, f);
		if (list_empty(&f->turn) || f->conn->syn_pending)
			continue;
		p = pipe_of_open(s, f);
		if (p && view->datagram)
			continue;
		view->datagram = true;
		view->datagram_on = p;
		if (!p || pipe_room(p))
			break;
	}
	s->out.datagrams = !list_empty(&s->ext->flows);
}

static bool may_go_on(const struct session *s, const struct flow *f,
		      const struct pipe *p)
{
	const struct pipe *only = pipe_of_open(s, f);

	return !f->conn->syn_pending && (!only || only == p);
}

/* The first datagram of @f goes. False: it does not fit in. */
static bool put_first(struct session *s, struct flow *f, struct run *run,
		      size_t bytes)
{
	const struct datagram_item *first = datagrams_first(&f->queue);
	struct datagram_item *item;

	if (run->size - run->len < first->size ||
	    (run->len && (run->len + first->size > bytes ||
			  run->messages == RUN_MESSAGES)))
		return false;
	item = datagrams_take(&f->queue);
	memcpy(run->buf + run->len,
	       container_of(item, struct waiting, item)->message, item->size);
	run->len += item->size;
	run->messages++;
	run->uncounted++;
	f->conn->tx_messages++;
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
		struct flow *f = list_entry(pos, struct flow, turn);
		bool was_last = pos == last;

		next = pos->next;
		if (may_go_on(s, f, p)) {
			if (!put_first(s, f, run, bytes))
				return false;
			any = true;
			list_del(&f->turn);
			if (datagrams_first(&f->queue))
				list_add_tail(flows, &f->turn);
		}
		if (was_last)
			break;
	}
	return any;
}

struct run *flows_frame(struct session *s, struct pipe *p, size_t bytes)
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
		all += list_entry(pos, struct flow, turn)->queue.bytes;
		n++;
	}
	least = all / n / 2;
	list_each(pos, tmp, &s->ext->flows) {
		struct flow *f = list_entry(pos, struct flow, turn);

		if (s->ext->flows_bytes <= left)
			return;
		if (f->queue.bytes < least)
			continue;
		s->counts.datagrams.crowded += f->queue.count;
		drop_all(s, f);
	}
}

void flows_shed(struct session *s, size_t bytes)
{
	size_t all = s->ext->flows_bytes;
	size_t left = all > bytes ? all - bytes : 0;

	while (s->ext->flows_bytes > left)
		drop_large(s, left);
}

/* --- in --- */

void flows_came(struct session *s, const struct wire_datagram *what)
{
	const struct channel *ch = s->ext->channel[what->id];
	struct conn *c = ch ? ch->conn : NULL;
	struct flow *f = c ? c->flow : NULL;
	bool addressed = what->at.kind != DESTINATION_NONE;

	if (!f || !f->ops ||
	    addressed != (c->dst->kind == DESTINATION_NONE)) {
		s->counts.datagrams.stray++;
		return;
	}
	s->counts.datagrams.received++;
	c->rx_messages++;
	c->rx_bytes += what->payload_len;
	f->passed_at = loop_now(s->engine->loop);
	if (addressed && what->at.port != NAMES_PORT)
		f->names = false;
	f->ops->came(f, &what->at, what->payload, what->payload_len);
}

void flow_put(struct flow *f, int fd, const struct sockaddr_storage *to,
	      const struct iovec *parts, int n)
{
	udp_out_add(session_of(f)->engine->udp_out, &f->sender, fd, to, parts,
		    n);
}

void flows_bad(struct session *s, uint16_t id)
{
	struct channel *ch = s->ext->channel[id];

	if (!ch || !ch->conn || !ch->conn->flow) {
		s->counts.dropped++;
		return;
	}
	s->counts.protocol++;
	if (session_refuses(s, REFUSAL_PROTOCOL))
		log_warn(s->engine->log, "session %u: connection %u was ended: an address of a datagram is not of its kind",
			 s->number, id);
	conn_refuse(ch->conn, CONN_END_PROTOCOL);
}

void flows_init(struct extended *x)
{
	list_init(&x->flows);
}
