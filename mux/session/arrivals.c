/* SPDX-License-Identifier: MIT */
/*
 * What pipes bring in the extension. A message of an id takes its place in the id's
 * order, whichever use it belongs to, and acts when it is due; docs/wire-format.md
 * says what ends with a bad one.
 *
 * In a channel's order OPEN and SYNACK stand as WIRE_SYN, which the extension does
 * not have: their body is that of the message, from its type on.
 */
#include <stdio.h>
#include <string.h>

#include "../base/log.h"
#include "../base/plural.h"
#include "../conn/conn.h"
#include "extended.h"
#include "flow.h"

static bool listens(const struct conn *c)
{
	return c && !c->ended && c->state != CONN_CLOSED;
}

/* --- what is due --- */

static enum use_kind kind_of(uint8_t type, const uint8_t *body)
{
	if (type == WIRE_DATA)
		return USE_DATA;
	if (type == WIRE_FIN)
		return body[0] == WIRE_REASON_NO_MORE ? USE_NO_MORE : USE_RESET;
	return body[0] == WIRE_OPEN ? USE_OPEN : USE_SYNACK;
}

static void reset(struct session *s, struct channel *ch, enum conn_end why,
		  const char *what)
{
	if (!ch->conn || ch->conn->fin_pending == WIRE_REASON_RST)
		return;
	s->counts.protocol++;
	if (session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: connection %u was ended: %s",
			 s->number, ch->id, what);
	conn_reset(ch->conn, why);
}

/* Early bytes at who answers: they count until SYNACK is sent, as far as they are let in. */
static bool fits_early(struct channel *ch, size_t len)
{
	if (ch->use.opener || ch->use.answered)
		return true;
	if (ch->pool->limit.used + len > ch->pool->limit.all)
		return false;
	ch->early += (uint32_t)len;
	ch->pool->limit.used += len;
	return true;
}

/* @body is NULL where it was let go for the memory that it took. */
static void take_data(struct session *s, struct channel *ch, bool dropped,
		      const uint8_t *body, size_t len)
{
	bool allowed;

	/* Before they are spent: others' grants count what waits, and these wait nowhere yet. */
	delivery_turn(s, ch->conn);
	allowed = windows_spend(s, ch, len);
	if (dropped)
		return;
	if (ch->conn && ch->conn->flow)
		reset(s, ch, CONN_END_PROTOCOL, "data on a flow of datagrams");
	else if (!body)
		reset(s, ch, CONN_END_LIMIT, "its bytes took too much memory out of order");
	else if (!fits_early(ch, len))
		reset(s, ch, CONN_END_LIMIT, "early data beyond the limit in all");
	else if (!allowed)
		reset(s, ch, CONN_END_PROTOCOL, "more bytes than its window allows");
	else if (listens(ch->conn))
		delivery_add(s, ch->conn, body, len);
}

static void open_conn(struct session *s, struct conn *c,
		      const struct wire_open *open)
{
	bool reverse = c->id > WIRE_ID_LP_MAX;
	bool sound = reverse ? destination_is_listener(&open->to) :
			       destination_is_sound(&open->to);

	if (open->protocol != WIRE_PROTOCOL_TCP ||
	    open->to.kind == DESTINATION_NONE || !sound)
		reset(s, c->channel, CONN_END_PROTOCOL,
		      "OPEN of a protocol or an address that is not known");
	else if (conn_set_destination(c, &open->to) < 0)
		conn_reset(c, CONN_END_LIMIT);
	else if (reverse)
		reverse_open(s, c);
	else
		s->role->open(s, c);
}

/* Whether OPEN may ask for @c, which is judged when it is there. */
static bool is_flow(const struct session *s, const struct wire_open *open)
{
	return open->protocol == WIRE_PROTOCOL_UDP && s->role->open_flow &&
	       session_carries_flows(s) && destination_is_sound(&open->to);
}

static bool takes_flow(struct session *s, struct conn *c)
{
	if (s->ext->nflows < flows_most(s))
		return inbound_takes(s, c);
	session_turn_away(s, c);
	if (session_notes(s, INCIDENT_FLOWS))
		log_warn(s->engine->log, "session %u: connection %u and others were refused: it has %u flow%s of datagrams already",
			 s->number, c->id, s->ext->nflows,
			 plural(s->ext->nflows));
	return false;
}

static void open_flow(struct session *s, struct conn *c,
		      const struct wire_open *open)
{
	if (!flows_begin(s, c) || conn_set_destination(c, &open->to) < 0)
		conn_reset(c, CONN_END_LIMIT);
	else
		s->role->open_flow(s, c);
}

static void take_open(struct session *s, struct channel *ch,
		      const struct wire_open *open)
{
	struct conn *c = session_conn_new(s, ch->id);
	bool flow = is_flow(s, open);

	if (!c) {
		extended_condemn(s, WIRE_GOODBYE_LIMIT, "no memory for a connection");
		return;
	}
	reverse_begins(s, c);
	channel_attach(ch, c);
	c->had_syn = true;
	credit_allow(&ch->out, ch->out.sent + open->window);
	credit_begin_early(&ch->in, ch->pool->limit.conn);
	if (!(flow ? takes_flow(s, c) : inbound_takes(s, c))) {
		conn_reset(c, CONN_END_LIMIT);
	} else if (flow) {
		open_flow(s, c, open);
	} else {
		windows_begin(s, ch);
		open_conn(s, c, open);
	}
}

static void take_synack(struct session *s, struct channel *ch,
			const struct wire_synack *synack)
{
	struct conn *c = ch->conn;

	credit_allow(&ch->out, synack->offset);
	channel_answered(ch);
	if (!c)
		return;
	if (synack->result == WIRE_SYNACK_CONNECTED) {
		conn_credited(c);
		hints_answered(s, ch);
	}
	if (c->flow)
		return;
	if (s->role->answered)
		s->role->answered(s, c, synack->result);
}

static void take_numbered(struct session *s, struct channel *ch,
			  const uint8_t *body, size_t len)
{
	struct wire_msg msg = {
		.type = WIRE_DATA, .body = body, .body_len = (uint16_t)len,
	};
	struct wire_ext ext;

	delivery_flush(s);
	wire_ext_get(&msg, s->ext->lp, &ext);
	if (ext.type == WIRE_OPEN)
		take_open(s, ch, &ext.open);
	else
		take_synack(s, ch, &ext.synack);
}

static void take_fin(struct session *s, struct channel *ch, enum use_kind kind)
{
	struct conn *c = ch->conn;

	delivery_flush(s);
	if (!c)
		return;
	conn_finish(c, kind == USE_RESET ? WIRE_REASON_RST :
					   WIRE_REASON_NO_MORE);
	if (c->flow)
		flows_finished(c);
}

/* One message whose turn it is. */
static void take(struct session *s, struct channel *ch, uint8_t type,
		 const uint8_t *body, size_t len)
{
	enum use_kind kind = kind_of(type, body);
	enum use_verdict verdict = use_due(&ch->use, kind);

	if (verdict == USE_BROKEN) {
		extended_condemn(s, WIRE_GOODBYE_PROTOCOL,
				 "id %u: a message that cannot be due where it is",
				 ch->id);
		return;
	}
	if (ch->conn)
		ch->conn->rx_messages++;
	if (type == WIRE_DATA)
		take_data(s, ch, verdict == USE_DROP, body, len);
	else if (type == WIRE_SYN)
		take_numbered(s, ch, body, len);
	else if (verdict == USE_TAKE)
		take_fin(s, ch, kind);
	ids_settle(s->ext, ch);
}

/* --- order --- */

/* The places of its messages stay, since the id's numbers go on. */
void arrivals_let_go(struct session *s, struct channel *ch)
{
	size_t before = reorder_bytes(&ch->order);

	if (ch->conn)
		conn_waits_in_vain(ch->conn, &ch->order);
	reorder_hollow(&ch->order);
	inbound_early(s, &ch->order, before);
}

static void take_early(struct session *s, struct channel *ch)
{
	struct reorder_early *early;
	size_t before = reorder_bytes(&ch->order);

	while (session_is_up(s) && (early = reorder_take(&ch->order))) {
		inbound_early(s, &ch->order, before);
		before = reorder_bytes(&ch->order);
		if (ch->conn)
			delivery_waited(s, ch->conn, &ch->order, early);
		take(s, ch, early->type, early->hollow ? NULL : early->body,
		     early->body_len);
		hints_due(s, ch, early->number);
		/* take() may have flushed: it lives until the next flush. */
		delivery_keep(s, early);
	}
}

/*
 * Until all have @most together. The connection that has most is ended, and its
 * bytes let go. Where the places of its messages alone are too much, there were more
 * messages than bytes, and the session ends.
 */
static void limit_early(struct session *s, size_t most)
{
	while (s->in.early > most && session_is_up(s)) {
		struct reorder *q = ranking_largest(&s->in.ranking);
		struct channel *ch = container_of(q, struct channel, order);
		size_t payload = reorder_payload(q);

		s->counts.reorder_limit++;
		reset(s, ch, CONN_END_LIMIT, "it holds most out of order");
		arrivals_let_go(s, ch);
		if (reorder_count(q) * (size_t)REORDER_PLACE > payload)
			extended_condemn(s, WIRE_GOODBYE_LIMIT,
					 "messages out of order take %zu bytes",
					 s->in.early);
	}
}

void arrivals_shed(struct session *s, size_t bytes)
{
	limit_early(s, s->in.early > bytes ? s->in.early - bytes : 0);
}

static void put(struct session *s, struct channel *ch,
		const struct wire_msg *msg)
{
	size_t before = reorder_bytes(&ch->order);
	enum reorder_verdict verdict;

	windows_arrival(s, ch);
	verdict = reorder_put(&ch->order, msg, loop_now(s->engine->loop));
	inbound_early(s, &ch->order, before);
	switch (verdict) {
	case REORDER_DUE:
		take(s, ch, (uint8_t)msg->type, msg->body, msg->body_len);
		take_early(s, ch);
		break;
	case REORDER_EARLY:
		windows_early(s, ch);
		limit_early(s, REORDER_MAX_SESSION);
		break;
	case REORDER_DUPLICATE:
		s->counts.duplicates++;
		break;
	case REORDER_TOO_FAR:
		reset(s, ch, CONN_END_PROTOCOL, "a number too far ahead");
		break;
	case REORDER_NO_MEMORY:
		extended_condemn(s, WIRE_GOODBYE_LIMIT, "no memory");
		break;
	}
}

static void numbered(struct session *s, uint16_t id, const struct wire_msg *msg)
{
	struct channel *ch = ids_channel(s->ext, id);

	if (ch)
		put(s, ch, msg);
	else
		extended_condemn(s, WIRE_GOODBYE_LIMIT, "no memory for id %u", id);
}

/* --- the extension's own messages --- */

static void opens_or_answers(struct session *s, const struct wire_msg *msg,
			     uint16_t id)
{
	struct wire_msg as_syn = *msg;

	as_syn.type = WIRE_SYN;
	as_syn.id = id;
	numbered(s, id, &as_syn);
}

static void window_came(struct session *s, const struct wire_window *window)
{
	struct channel *ch = s->ext->channel[window->id];

	if (!ch || !credit_allow(&ch->out, window->offset)) {
		s->counts.dropped++;
		s->counts.stale += ch != NULL;
	} else if (ch->conn) {
		conn_credited(ch->conn);
	}
}

static void ping_came(struct session *s, struct leg *leg,
		      const struct wire_ping *ping)
{
	leg->pong = *ping;
	leg->pong_due = true;
	loop_after(s->engine->loop, &s->out.pump);
}

/* The other proxy parsed what the pipe brought up to the PING. */
static void pong_came(struct session *s, struct leg *leg,
		      const struct wire_ping *pong)
{
	if (!leg->pinged || pong->token != leg->token)
		return;
	leg->pinged = false;
	leg->progress_at = loop_now(s->engine->loop);
}

/* For who reads the log and has not got the wire format at hand. */
static const char *goodbye_text(uint8_t reason)
{
	switch (reason) {
	case WIRE_GOODBYE_SHUTDOWN:
		return ": it is ending";
	case WIRE_GOODBYE_PROTOCOL:
		return ": what it got broke the protocol";
	case WIRE_GOODBYE_LIMIT:
		return ": it is at a limit";
	default:
		return "";
	}
}

/* @before: the message that the pipe brought before this one. */
static void act(struct session *s, struct pipe *p, const struct wire_msg *msg,
		const struct wire_ext *ext, const struct last *before)
{
	struct leg *leg = &s->ext->leg[p->index];

	switch (ext->type) {
	case WIRE_OPEN:
		opens_or_answers(s, msg, ext->open.id);
		hints_opened(s, leg, ext->open.id, msg->number);
		break;
	case WIRE_SYNACK:
		opens_or_answers(s, msg, ext->synack.id);
		break;
	case WIRE_WINDOW:
		window_came(s, &ext->window);
		break;
	case WIRE_HINT:
		hints_came(s, leg, before, &ext->hint);
		break;
	case WIRE_ACK:
		keeping_acked(s, &ext->ack);
		break;
	case WIRE_PING:
		ping_came(s, leg, &ext->ping);
		break;
	case WIRE_PONG:
		pong_came(s, leg, &ext->ping);
		break;
	case WIRE_DATAGRAM:
		p->path->passing.datagram_at = loop_now(s->engine->loop);
		flows_came(s, &ext->datagram);
		break;
	case WIRE_TOO_BIG:
		flows_told_mtu(s, &ext->too_big);
		break;
	case WIRE_LISTEN:
		reverse_listen(s, &ext->listen);
		break;
	case WIRE_LISTENING:
		reverse_listening(s, &ext->listening);
		break;
	case WIRE_PATH:
		ways_came(s, &ext->path);
		break;
	case WIRE_GOODBYE:
		session_fail(s, "the other end said GOODBYE, reason %u%s",
			     ext->goodbye.reason,
			     goodbye_text(ext->goodbye.reason));
		break;
	case WIRE_HELLO:
	case WIRE_WELCOME:
		extended_pipe_erred(s, p, "a second HELLO or WELCOME");
		break;
	default:	/* of features that were not agreed upon */
		s->counts.dropped++;
	}
}

/* RP opens connections only where both ends agreed to that. */
static bool is_from_rp(const struct wire_ext *ext)
{
	return ext->type == WIRE_OPEN && ext->open.id > WIRE_ID_LP_MAX;
}

static void bad(struct session *s, struct pipe *p, const struct wire_msg *msg,
		const struct wire_ext *ext, enum wire_ext_result result)
{
	switch (wire_ext_scope(result)) {
	case WIRE_SCOPE_CONNECTION:
		/* It has a number, so it acts when it is due: as a reset. */
		if (result == WIRE_EXT_BAD_REASON)
			numbered(s, msg->id, msg);
		else if (ext->type == WIRE_OPEN)
			opens_or_answers(s, msg, ext->open.id);
		else
			flows_bad(s, ext->datagram.id);
		break;
	case WIRE_SCOPE_PIPE:
		extended_pipe_erred(s, p, wire_ext_result_text(result));
		break;
	case WIRE_SCOPE_SESSION:
		extended_condemn(s, WIRE_GOODBYE_PROTOCOL, "pipe %u, %s: %s",
				 p->index, wire_ext_name(ext->type),
				 wire_ext_result_text(result));
		break;
	default:
		s->counts.dropped++;
	}
}

static void own_message(struct session *s, struct pipe *p,
			const struct wire_msg *msg, const struct last *before)
{
	struct wire_ext ext;
	enum wire_ext_result result = wire_ext_get(msg, s->ext->lp, &ext);

	if (is_from_rp(&ext) && !session_reverses(s))
		result = WIRE_EXT_WRONG_WAY;
	if (result)
		bad(s, p, msg, &ext, result);
	else if (ext.type == WIRE_EXT_NONE)
		numbered(s, msg->id, msg);
	else
		act(s, p, msg, &ext, before);
}

/* False: @p has ended, by what the message says of its count. */
static bool is_counted(struct session *s, struct pipe *p,
		       const struct wire_msg *msg)
{
	struct leg *leg = &s->ext->leg[p->index];
	bool counts = wire_ext_counts(msg);
	enum tally_verdict verdict = TALLY_NEW;
	char why[96];

	if (!pipe_keeps_order(p))
		verdict = tally_told(&leg->tally, counts, p->ppid);
	else if (counts)
		tally_next(&leg->tally);
	if (verdict) {
		snprintf(why, sizeof(why), "pipe %u brought %s: %u", p->index,
			 tally_text(verdict), p->ppid);
		s->counts.protocol++;
		extended_pipe_erred(s, p, why);
		return false;
	}
	if (counts)
		control_came(s, WIRE_HEADER + (size_t)msg->body_len);
	return true;
}

bool arrivals_message(struct session *s, struct pipe *p,
		      const struct wire_msg *msg, uint64_t offset)
{
	unsigned int index = p->index;
	struct leg *leg;
	struct last before;

	(void)offset;
	if (s->dead)
		return false;
	if (s->stopping)
		return true;
	p->in_order = false;	/* who sends had WELCOME */
	if (!is_counted(s, p, msg))
		return false;
	leg = &s->ext->leg[index];
	if (leg->last.what == LAST_HINT)
		hints_followed(s, leg, msg);
	before = leg->last;
	leg->last.what = LAST_ANY;
	if (msg->type == WIRE_DATA && msg->id) {	/* most are */
		p->path->came_at = loop_now(s->engine->loop);
		numbered(s, msg->id, msg);
	} else {
		own_message(s, p, msg, &before);
	}
	return !s->dead && s->pipes[index] == p;
}

bool arrivals_expects(struct session *s, unsigned int pipe,
		      const struct wire_head *head, uint32_t *number)
{
	const struct channel *ch = s->ext->channel[head->id];

	(void)pipe;
	*number = ch ? ch->order.next : 0;
	return head->id != 0;
}
