/* SPDX-License-Identifier: MIT */
/*
 * The way in: whose message is it, is it due, and to the socket with it.
 *
 * Memory is bounded. Out of order, a session may have REORDER_MAX_SESSION;
 * beyond it the connection that has most is reset. In order, pipes pause (pausing).
 * Because of bytes out of order they never do: the message that fills the gap
 * may sit behind the stop. What is early is read later (reader).
 */
#include "../base/log.h"
#include "../conn/conn.h"
#include "session_inside.h"

/* --- out of order: the limits --- */

/* Its early data is dropped, and its SYN will be refused when it comes. */
static void drop_early(struct session *s, struct conn *c)
{
	s->counts.early_dropped++;
	if (session_notes(s, INCIDENT_EARLY))
		log_warn(s->engine->log, "session %u: connection %u sent %zu bytes ahead of its SYN: dropped, and the SYN will be refused",
			 s->number, c->id, reorder_payload(&c->reorder));
	c->lost_early = true;
	conn_drop_early(c);
}

static void limit_early(struct session *s, struct conn *c)
{
	if (!c->had_syn && reorder_payload(&c->reorder) > EARLY_MAX)
		drop_early(s, c);
	while (s->in.early > REORDER_MAX_SESSION) {
		struct reorder *q = ranking_largest(&s->in.ranking);
		struct conn *most;

		if (!q)
			return;
		most = container_of(q, struct conn, reorder);
		if (!most->had_syn) {
			drop_early(s, most);
			continue;
		}
		s->counts.reorder_limit++;
		if (session_notes(s, INCIDENT_REORDER))
			log_warn(s->engine->log, "session %u: out of order, connection %u holds %zu of %zu bytes: reset",
				 s->number, most->id, reorder_bytes(&most->reorder), s->in.early);
		conn_reset(most, CONN_END_LIMIT);
	}
}

void inbound_charge(struct session *s, int64_t bytes)
{
	if (hoard_add(&s->hoard, bytes) && bytes > 0)
		loop_after(s->engine->loop, &s->engine->relief);
}

void inbound_early(struct session *s, struct reorder *q, size_t before)
{
	if (reorder_bytes(q) == before)
		return;
	s->in.early += reorder_bytes(q) - before;
	inbound_charge(s, (int64_t)reorder_bytes(q) - (int64_t)before);
	ranking_update(&s->in.ranking, q);
}

/* --- what is due --- */

bool inbound_takes(struct session *s, struct conn *c)
{
	bool many = s->nconns > s->engine->settings->max_conns;

	if (!many && !session_is_crowded(s))
		return true;
	session_turn_away(s, c);
	if (session_notes(s, INCIDENT_CONNECTIONS))
		log_warn(s->engine->log, "session %u: connection %u and others were refused: its %u connections %s",
			 s->number, c->id, s->nconns,
			 many ? "are more than --max-conns allows" :
				"take too much of --memory");
	return false;
}

static void take_syn(struct session *s, struct conn *c, const uint8_t *body)
{
	struct destination to = { .kind = DESTINATION_IPV4, .len = 4 };

	wire_get_syn(body, to.bytes, &to.port);
	if (c->lost_early || !inbound_takes(s, c) ||
	    conn_set_destination(c, &to) < 0)
		conn_reset(c, CONN_END_LIMIT);
	else
		s->role->open(s, c);
}

/* One message whose turn it is. */
static void take(struct session *s, struct conn *c, uint8_t type,
		 const uint8_t *body, size_t len)
{
	c->rx_messages++;
	switch (type) {
	case WIRE_DATA:
		delivery_add(s, c, body, len);
		break;
	case WIRE_SYN:
		delivery_flush(s);
		take_syn(s, c, body);
		break;
	case WIRE_FIN:
		delivery_flush(s);
		conn_finish(c, body[0]);
		break;
	}
}

static bool listens(const struct conn *c)
{
	return !c->ended && !(c->state == CONN_CLOSED);
}

/* What the message just taken released. */
static void take_early(struct session *s, struct conn *c)
{
	struct reorder_early *early;
	size_t before = reorder_bytes(&c->reorder);

	while (listens(c) && (early = reorder_take(&c->reorder))) {
		inbound_early(s, &c->reorder, before);
		delivery_waited(s, c, &c->reorder, early);
		take(s, c, early->type, early->body, early->body_len);
		/* take() may have flushed: it lives until the next flush. */
		delivery_keep(s, early);
		before = reorder_bytes(&c->reorder);
	}
}

/* --- arrival --- */

static void put(struct session *s, struct conn *c, const struct pipe *p,
		const struct wire_msg *msg, uint64_t offset)
{
	size_t before = reorder_bytes(&c->reorder);
	enum reorder_verdict verdict = reorder_put(&c->reorder, msg,
					loop_now(s->engine->loop));

	inbound_early(s, &c->reorder, before);
	switch (verdict) {
	case REORDER_DUE:
		take(s, c, (uint8_t)msg->type, msg->body, msg->body_len);
		if (reorder_count(&c->reorder))
			take_early(s, c);
		if (reorder_count(&c->reorder))
			gaps_note(s, c);
		break;
	case REORDER_EARLY:
		if (reorder_count(&c->reorder) == 1)
			gaps_note(s, c);
		limit_early(s, c);
		break;
	case REORDER_DUPLICATE:
		s->counts.duplicates++;
		break;
	case REORDER_TOO_FAR:
		s->counts.protocol++;
		if (session_notes(s, INCIDENT_PROTOCOL))
			log_warn(s->engine->log, "session %u: pipe %u, byte %llu, number: %u is too far ahead of %u (id %u): connection ended",
				 s->number, p->index, (unsigned long long)offset,
				 msg->number, c->reorder.next, c->id);
		conn_reset(c, CONN_END_PROTOCOL);
		break;
	case REORDER_NO_MEMORY:
		conn_reset(c, CONN_END_LIMIT);
		break;
	}
}

static struct conn *newcomer(struct session *s, const struct wire_msg *msg)
{
	struct conn *c = baseline_conn_new(s, msg->id);

	/* Were it dropped, somebody would wait for an answer for ever. */
	if (!c) {
		session_fail(s, "there is no memory for connection %u",
			     msg->id);
	} else if (msg->type != WIRE_SYN) {
		/* Without a place nothing of it is queued, and its SYN will be refused. */
		c->lost_early = !inbound_takes(s, c);
		conn_await_syn(c);
	}
	return c;
}

static struct conn *route(struct session *s, struct pipe *p,
			  const struct wire_msg *msg)
{
	bool accepts = session_accepts(s);
	unsigned int pipe = pipe_keeps_order(p) ? p->index : TABLE_NO_ORDER;
	struct table_route r = table_route(s->table, msg, pipe, accepts,
					   pausing_reading_time(s));

	if (r.evicted)
		conn_abort(r.evicted, CONN_END_PROTOCOL);
	baseline_mind_rest(s);
	if (r.verdict == TABLE_NEW)
		return newcomer(s, msg);
	if (r.verdict == TABLE_LATE)
		s->counts.late++;
	if (r.closing)
		conn_heed(r.closing, msg);
	return r.conn;
}

bool inbound_expects(struct session *s, unsigned int pipe,
		     const struct wire_head *head, uint32_t *number)
{
	struct table_route r = table_foresee(s->table, head, pipe,
					     session_accepts(s));

	*number = r.conn ? r.conn->reorder.next : 0;
	if (!head->id || r.verdict == TABLE_LATE)
		return false;
	return !r.conn || (listens(r.conn) && !r.conn->lost_early);
}

/* Sound in frame, wrong in content: its connection is ended, if it has one. */
static void condemn(struct session *s, struct pipe *p, struct conn *c,
		    const struct wire_msg *msg, uint64_t offset,
		    enum wire_error err)
{
	s->counts.protocol++;
	if (session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: pipe %u, byte %llu, %s: %s (id %u, number %u): %s",
			 s->number, p->index, (unsigned long long)offset,
			 wire_error_field(err), wire_error_text(err), msg->id,
			 msg->number,
			 c ? "connection ended" : "message dropped");
	if (c)
		conn_reset(c, CONN_END_PROTOCOL);
}

/* Whose it is; a malformed SYN makes nobody a successor. */
static struct conn *accused(struct session *s, struct pipe *p,
			    const struct wire_msg *msg)
{
	struct wire_msg plain = *msg;

	plain.type = WIRE_DATA;
	return msg->id ? route(s, p, &plain) : NULL;
}

/*
 * Who opens all connections knows which there were. A message of another one is
 * another session's, so it may have got bytes of this one as well.
 */
static bool is_foreign(const struct session *s, const struct wire_msg *msg)
{
	return !session_accepts(s) && msg->id && !table_gave(s->table, msg->id);
}

static void reject_foreign(struct session *s, const struct pipe *p,
			   const struct wire_msg *msg, uint64_t offset)
{
	s->counts.protocol++;
	if (session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: pipe %u, byte %llu, connection id: %u was never opened here: session ended; does another lp share the address of this one?",
			 s->number, p->index, (unsigned long long)offset,
			 msg->id);
	session_fail(s, "pipe %u brought a message of connection %u, which was never opened here",
		     p->index, msg->id);
}

bool inbound_message(struct session *s, struct pipe *p,
		     const struct wire_msg *msg, uint64_t offset)
{
	enum wire_error err = wire_check(msg, !session_accepts(s));
	struct conn *c;

	if (s->dead)
		return false;
	if (s->stopping)
		return true;
	if (is_foreign(s, msg)) {
		reject_foreign(s, p, msg, offset);
		return false;
	}
	if (err) {
		delivery_flush(s);
		condemn(s, p, accused(s, p, msg), msg, offset, err);
		return !s->dead;
	}
	c = route(s, p, msg);
	if (!c)
		return !s->dead;
	if (!listens(c) || (c->lost_early && msg->type != WIRE_SYN)) {
		s->counts.late++;
		return true;
	}
	if (msg->type == WIRE_SYN)
		c->had_syn = true;
	if (!c->had_syn && !msg->number) {
		condemn(s, p, c, msg, offset, WIRE_BAD_FIRST);
		return !s->dead;
	}
	put(s, c, p, msg, offset);
	return !s->dead;
}

/* --- the beginning and the end --- */

void inbound_start(struct session *s)
{
	pausing_start(s);
	gaps_start(s);
	ranking_init(&s->in.ranking);
	reading_start(s);
}

void inbound_stop(struct session *s)
{
	pausing_stop(s);
	gaps_stop(s);
	reading_stop(s);
}
