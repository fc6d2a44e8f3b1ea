/* SPDX-License-Identifier: MIT */
/*
 * HINT: what one end tells the other of the bytes that this one sends on a connection. What is
 * to be said is the channel's state, and the last of it becomes a message: behind the OPEN on
 * its pipe, or it would be nobody's when it overtakes; whenever it changes; ahead of the first
 * bytes on their pipe, where it is said between OPEN and them, or an answer to these could be
 * there first; and once more when SYNACK has come, in case no earlier one was heeded.
 *
 * A HINT has no number. One that stands beside a message that has one, which is not due yet,
 * waits with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../base/addr.h"
#include "../base/log.h"
#include "../base/seldom.h"
#include "../conn/conn.h"
#include "extended.h"

/*
 * What came beside message @number, which is not due yet. So many wait in a session; of more the
 * other end says each once more.
 */
enum { WAITING_MOST = 256 };

struct waiting {
	struct list member;
	struct wire_hint said;
	uint32_t number;
};

static bool are_spoken(const struct extended *x)
{
	return x->welcome.features & WIRE_FEATURE_HINT;
}

/* --- of which connection --- */

static bool is_named(const struct conn *c, uint16_t id,
		     const struct sockaddr_storage *peer)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	if (c->over || c->flow)
		return false;
	if (!peer)
		return c->id == id;
	return c->watch.fd >= 0 &&
	       !getpeername(c->watch.fd, (struct sockaddr *)&at, &len) &&
	       addr_same(&at, peer);
}

static struct conn *find(const struct session *s, uint16_t id,
			 const struct sockaddr_storage *peer)
{
	const struct list *pos;

	for (pos = s->conns.next; pos != &s->conns; pos = pos->next) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (is_named(c, id, peer))
			return c;
	}
	return NULL;
}

struct conn *session_conn(const struct session *s, uint16_t id)
{
	return find(s, id, NULL);
}

struct conn *session_conn_from(const struct session *s,
			       const struct sockaddr_storage *peer)
{
	return find(s, 0, peer);
}

/* --- what is to be said --- */

static void tell(struct session *s, struct channel *ch)
{
	list_move_tail(&s->ext->hints_due, &ch->said->due);
	loop_after(s->engine->loop, &s->out.pump);
}

/* Ahead of the first bytes as well: no pipe is known to bring it before them. */
static void say_now(struct session *s, struct channel *ch)
{
	tell(s, ch);
	ch->hint_first = !ch->conn->tx_bytes;
}

static bool may_send(const struct channel *ch)
{
	return !ch->use.peer_ended && !ch->use.reset;
}

/* Until OPEN goes the channel's use is the one before. */
static bool is_before_synack(const struct conn *c)
{
	const struct use *use = &c->channel->use;

	return c->syn_pending || (use->opener && !use->answered);
}

int session_hint(struct session *s, struct conn *c, const struct hint *what)
{
	struct channel *ch = c->channel;
	struct hint_said *said;

	if (!s->ext || !are_spoken(s->ext))
		return -EPROTONOSUPPORT;
	if (!ch || ch->conn != c || c->flow ||
	    (!c->syn_pending && !may_send(ch)))
		return -ENOTCONN;
	if (what->bytes > WIRE_HINT_MOST)
		return -EOVERFLOW;
	said = channel_says(ch);
	if (!said)
		return -ENOMEM;
	said->hint = *what;
	said->to = hint_end(what->bytes, c->rx_bytes);
	if (c->syn_pending)
		s->counts.hints_sent += !ch->hint_early;
	else
		say_now(s, ch);
	ch->hint_early |= is_before_synack(c);
	return 0;
}

struct hint session_hinted(const struct conn *c)
{
	struct hint hint = { .bytes = 0 };
	const struct hint_said *said;

	if (!c->channel || c->channel->conn != c || !c->channel->said)
		return hint;
	said = c->channel->said;
	hint = said->hint;
	hint.bytes = hint_left(said->to, c->rx_bytes);
	return hint;
}

static void set_urgency(struct session *s, struct conn *c, uint8_t urgency)
{
	c->urgency = urgency;
	s->sched.ordered = false;
	loop_after(s->engine->loop, &s->out.pump);
}

void session_steer(struct session *s, struct conn *c, const struct hint *what)
{
	if (ways_are_several(s->ext))
		opens_keep_to(s, c, what->paths);
	set_urgency(s, c, what->urgency);
}

void hints_answered(struct session *s, struct channel *ch)
{
	if (ch->conn && ch->hint_early && may_send(ch))
		tell(s, ch);
}

bool hints_next(struct extended *x, struct wire_ext *what)
{
	struct hint_said *said;

	if (list_empty(&x->hints_due))
		return false;
	said = list_first(&x->hints_due, struct hint_said, due);
	list_del(&said->due);
	*what = channel_hint(said->of);
	x->s->counts.hints_sent++;
	return true;
}

/* --- what came --- */

static void is_dropped(struct session *s)
{
	s->counts.dropped++;
	s->counts.hints_dropped++;
}

/* That connection may just have ended, which is nobody's fault. */
static void is_nobodys(struct session *s, const struct wire_hint *said)
{
	is_dropped(s);
	if (seldom(&s->ext->hint_said_at, s->engine->loop))
		log_info(s->engine->log, "session %u: a HINT was dropped: connection %u sends nothing",
			 s->number, said->id);
}

static void is_too_large(struct session *s, const struct wire_hint *said)
{
	is_dropped(s);
	if (session_refuses(s, REFUSAL_PROTOCOL))
		log_warn(s->engine->log, "session %u: a HINT was dropped: %llu bytes that remain on connection %u are more than %llu",
			 s->number, (unsigned long long)said->remaining,
			 said->id, (unsigned long long)WIRE_HINT_MOST);
}

/* The paths are LP's: what RP says of them is nothing to LP, nor are they where there is one. */
static void heed(struct session *s, struct conn *c, const struct wire_hint *said)
{
	s->counts.hints_received++;
	conn_tell_size(c, said->remaining);
	if (!s->ext->lp && ways_are_several(s->ext))
		opens_keep_to(s, c, said->paths);
	set_urgency(s, c, said->priority);
}

static bool is_heard(const struct conn *c)
{
	return c && !c->over && !c->out_ended && !c->flow;
}

static struct waiting *waiting_of(struct extended *x, uint16_t id)
{
	struct list *pos;

	for (pos = x->hints_waiting.next; pos != &x->hints_waiting; pos = pos->next) {
		struct waiting *w = list_entry(pos, struct waiting, member);

		if (w->said.id == id)
			return w;
	}
	return NULL;
}

static struct waiting *waiting_new(struct extended *x)
{
	struct waiting *w;

	if (x->nhints_waiting == WAITING_MOST)
		return NULL;
	w = malloc(sizeof(*w));
	if (!w)
		return NULL;
	list_add_tail(&x->hints_waiting, &w->member);
	x->nhints_waiting++;
	return w;
}

static void waiting_free(struct extended *x, struct waiting *w)
{
	list_del(&w->member);
	x->nhints_waiting--;
	free(w);
}

/* In the place of another one of the id. */
static void waits_for(struct session *s, const struct wire_hint *said,
		      uint32_t number)
{
	struct waiting *w = waiting_of(s->ext, said->id);

	if (!w)
		w = waiting_new(s->ext);
	if (!w) {
		is_dropped(s);
		return;
	}
	w->said = *said;
	w->number = number;
}

/* What follows an OPEN that was there before may be of a use that is over. */
static void take(struct session *s, struct leg *leg, const struct last *before,
		 const struct wire_hint *said)
{
	struct channel *ch = s->ext->channel[said->id];
	bool behind = before->id == said->id;

	if (behind && before->what == LAST_OPEN_AGAIN) {
		is_dropped(s);
	} else if (behind && before->what == LAST_OPEN_WAITS) {
		waits_for(s, said, before->number);
	} else if (ch && is_heard(ch->conn)) {
		heed(s, ch->conn, said);
	} else {
		leg->hint = *said;
		leg->last = (struct last){ .what = LAST_HINT, .id = said->id };
	}
}

void hints_came(struct session *s, struct leg *leg, const struct last *before,
		const struct wire_hint *said)
{
	if (!are_spoken(s->ext))
		s->counts.dropped++;
	else if (said->remaining > WIRE_HINT_MOST)
		is_too_large(s, said);
	else
		take(s, leg, before, said);
}

void hints_followed(struct session *s, const struct leg *leg,
		    const struct last *last, const struct wire_msg *msg,
		    bool waits)
{
	if (waits && msg->id == last->id)
		waits_for(s, &leg->hint, msg->number);
	else
		is_nobodys(s, &leg->hint);
}

void hints_due(struct session *s, uint16_t id, uint32_t number)
{
	struct waiting *w = waiting_of(s->ext, id);
	struct conn *c = s->ext->channel[id]->conn;

	if (!w || w->number != number)
		return;
	if (is_heard(c))
		heed(s, c, &w->said);
	else
		is_nobodys(s, &w->said);
	waiting_free(s->ext, w);
}

void hints_init(struct extended *x)
{
	list_init(&x->hints_due);
	list_init(&x->hints_waiting);
}

void hints_fini(struct extended *x)
{
	while (!list_empty(&x->hints_waiting))
		waiting_free(x, list_first(&x->hints_waiting, struct waiting, member));
}
