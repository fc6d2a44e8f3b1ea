/* SPDX-License-Identifier: MIT */
/*
 * Flows of datagrams. An OPEN, its SYNACK and the FINs of a flow go the way of any
 * connection's; this is about its datagrams. Those that wait for a pipe are
 * flow_queue's.
 */
#include <errno.h>
#include <stdlib.h>

#include "../base/log.h"
#include "../base/udp_out.h"
#include "extended.h"
#include "flow.h"
#include "flow_queue.h"

struct flow {
	const struct flow_ops *ops;	/* NULL: its owner has let it go */
	void *owner;
	struct conn *conn;
	struct flow_queue queue;
	size_t charged;		/* by its owner, see flow_charge() */
	bool counted;		/* in extended.nflows */
	bool socket;		/* its owner has one for it */
	bool names;		/* all of it went to port 53 */
	int64_t passed_at;	/* something did */
	struct timer idle;	/* RP */
	struct udp_sender sender;
	uint16_t mtu;		/* RP: to be told; */
	struct list mtu_due;	/* in extended.narrow until it is, */
	int64_t mtu_told_at;	/* and when it was last; 0: never */
};

static struct session *session_of(const struct flow *f)
{
	return f->conn->owner->self;
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

void flow_charge(struct flow *f, int64_t bytes)
{
	f->charged += (size_t)bytes;
	inbound_charge(session_of(f), bytes);
}

size_t flow_charged(const struct flow *f)
{
	return f->charged;
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
	flow_queue_empty(&f->queue);
	list_del(&f->mtu_due);
	list_del(&f->conn->place);
	s->ext->nflows -= f->counted;
	f->counted = f->socket = false;
}

static void tell_end(struct flow *f)
{
	const struct flow_ops *ops = f->ops;

	f->ops = NULL;
	detach(f);
	if (ops)
		ops->ended(f);
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
	conn_reset(f->conn, why);
}

void flows_closed(struct conn *c)
{
	tell_end(c->flow);
}

void flows_finished(struct conn *c)
{
	if (c->ended)
		return;
	tell_end(c->flow);
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
	tell_end(f);
	conn_end(f->conn, CONN_END_IDLE);
}

static void unsent(struct udp_sender *by, int err)
{
	struct flow *f = container_of(by, struct flow, sender);

	flow_lost(f, err == EMSGSIZE ? FLOW_NARROW : FLOW_UNSENT);
	if (f->ops && f->ops->unsent)
		f->ops->unsent(f, err);
}

static void narrow(struct udp_sender *by)
{
	struct flow *f = container_of(by, struct flow, sender);

	if (f->ops && f->ops->narrow)
		f->ops->narrow(f, by->forbids);
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
	udp_sender_init(&f->sender, unsent, narrow);
	flow_queue_init(&f->queue, c);
	list_init(&f->mtu_due);
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
	struct conn *c = has_room(s) ? ids_open(s) : NULL;
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

/* Once a session: whoever sends one sends more of them. */
static void count_large(struct session *s, const struct conn *c)
{
	s->counts.datagrams.large++;
	if (s->ext->large_said)
		return;
	s->ext->large_said = true;
	log_warn(s->engine->log, "session %u: connection %u: a datagram was dropped, because no message holds so many bytes (4,085 to an IPv4 address); more of them are only counted",
		 s->number, c->id);
}

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
	case FLOW_NARROW:
		n->datagrams.narrow++;
		break;
	case FLOW_STRAY:
		n->datagrams.stray++;
		break;
	case FLOW_LARGE:
		count_large(session_of(f), f->conn);
		break;
	}
}

void flow_send(struct flow *f, const struct destination *at,
	       const uint8_t *payload, size_t len)
{
	struct session *s = session_of(f);
	uint8_t message[WIRE_MESSAGE_MAX];
	struct wire_ext what = { .type = WIRE_DATAGRAM };
	size_t size = 0;

	if (flow_queues_are_full(s))
		return;
	what.datagram.id = f->conn->id;
	if (at && (at->kind != DESTINATION_NONE || flow_tells_mtu(f)))
		what.datagram.at = *at;
	what.datagram.payload = payload;
	what.datagram.payload_len = (uint16_t)len;
	if (len <= WIRE_PAYLOAD_MAX)
		size = wire_ext_put(message, &what);
	if (!size) {
		flow_lost(f, FLOW_LARGE);
	} else if (flow_queue_put(&f->queue, message, size)) {
		f->conn->tx_bytes += len;
		f->passed_at = loop_now(s->engine->loop);
	}
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

void flow_leaves_from(struct flow *f, const struct sockaddr_storage *source)
{
	f->sender.source = source;
}

void flow_put_whole(struct flow *f, bool whole)
{
	f->sender.whole = whole;
}

/* --- what the path behind RP takes --- */

const struct destination flow_whole = {
	.kind = DESTINATION_NONE, .port = WIRE_DATAGRAM_WHOLE,
};

bool flow_tells_mtu(const struct flow *f)
{
	return session_of(f)->ext->welcome.features & WIRE_FEATURE_MTU &&
	       f->conn->dst->kind != DESTINATION_NONE;
}

bool flow_is_whole(const struct flow *f, const struct destination *at)
{
	return flow_tells_mtu(f) && at->port & WIRE_DATAGRAM_WHOLE;
}

/* It is not queued: what is due is the last that was to be told. */
void flow_tell_mtu(struct flow *f, unsigned int mtu)
{
	struct session *s = session_of(f);
	int64_t now = loop_now(s->engine->loop);

	if (!f->ops || !flow_tells_mtu(f) ||
	    (f->mtu_told_at &&
	     now - f->mtu_told_at < FLOW_MTU_PAUSE_MS * NS_PER_MS))
		return;
	f->mtu = mtu < UINT16_MAX ? (uint16_t)mtu : UINT16_MAX;
	f->mtu_told_at = now;
	if (list_empty(&f->mtu_due))
		list_add_tail(&s->ext->narrow, &f->mtu_due);
	loop_after(s->engine->loop, &s->out.pump);
}

bool flows_next_mtu(struct extended *x, struct wire_ext *what)
{
	struct flow *f;

	if (list_empty(&x->narrow))
		return false;
	f = list_first(&x->narrow, struct flow, mtu_due);
	list_del(&f->mtu_due);
	x->s->counts.too_big++;
	*what = (struct wire_ext){
		.type = WIRE_TOO_BIG,
		.too_big = { .id = f->conn->id, .mtu = f->mtu },
	};
	return true;
}

/* No path may take less, so nobody is told so. */
static unsigned int least_mtu(const struct flow *f)
{
	return f->conn->dst->kind == DESTINATION_IPV6 ? 1280 : 68;
}

void flows_told_mtu(struct session *s, const struct wire_too_big *what)
{
	const struct channel *ch = s->ext->channel[what->id];
	struct flow *f = ch && ch->conn ? ch->conn->flow : NULL;

	if (!f || !f->ops || !flow_tells_mtu(f) || what->mtu < least_mtu(f)) {
		s->counts.dropped++;
		return;
	}
	s->counts.too_big++;
	if (f->ops->told_mtu)
		f->ops->told_mtu(f, what->mtu);
}

void flows_bad(struct session *s, uint16_t id)
{
	struct channel *ch = s->ext->channel[id];

	if (!ch || !ch->conn || !ch->conn->flow) {
		s->counts.dropped++;
		return;
	}
	s->counts.protocol++;
	if (session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: connection %u was ended: an address of a datagram is not of its kind",
			 s->number, id);
	conn_reset(ch->conn, CONN_END_PROTOCOL);
}

void flows_init(struct extended *x)
{
	list_init(&x->flows);
	list_init(&x->narrow);
}
