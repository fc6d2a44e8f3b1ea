/* SPDX-License-Identifier: MIT */
/*
 * HINT: what one end tells the other of the bytes that this one sends on a connection. What is
 * to be said is the channel's state, and the last of it becomes a message: behind the OPEN on
 * its pipe, or it would be nobody's when it overtakes; whenever it changes; ahead of the first
 * bytes on their pipe, where it is said between OPEN and them and binds them to paths, or an
 * answer to these could be there first; and once more when SYNACK has come, in case no earlier
 * one was heeded.
 *
 * A HINT has no number. It belongs to the same use of its id as the message that it stands beside:
 * an OPEN directly in front of it, or else a message of its id directly behind it. If that use is
 * over the HINT is dropped; if it has not begun the HINT waits with the message.
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
 * What came beside message @number, which is not due yet. So many wait in a session. Beyond that a
 * HINT is dropped; it comes once more after SYNACK.
 */
enum { WAITING_MOST = 256 };

struct waiting {
	struct list member;
	struct channel *of;
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

	if (c->ended || c->flow)
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

static bool binds(const struct extended *x, const struct hint *what)
{
	return x->lp && ways_are_several(x) &&
	       (what->paths & WIRE_HINT_PATHS);
}

/* Ahead of first bytes that it binds as well: no pipe is known to bring it before them. */
static void say_now(struct session *s, struct channel *ch)
{
	tell(s, ch);
	ch->hint_first = binds(s->ext, &ch->said->hint) &&
			 !ch->conn->tx_bytes;
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
	if (!c->syn_pending)
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

static void count_dropped(struct session *s)
{
	s->counts.dropped++;
	s->counts.hints_dropped++;
}

/* That connection may just have ended, which is nobody's fault. */
static void drop_nobodys(struct session *s, const struct wire_hint *said)
{
	count_dropped(s);
	if (seldom(&s->ext->hint_said_at, s->engine->loop))
		log_info(s->engine->log, "session %u: a HINT was dropped: connection %u sends nothing",
			 s->number, said->id);
}

static void drop_too_large(struct session *s, const struct wire_hint *said)
{
	count_dropped(s);
	if (session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: a HINT was dropped: %llu bytes that remain on connection %u are more than %llu",
			 s->number, (unsigned long long)said->remaining,
			 said->id, (unsigned long long)WIRE_HINT_MOST);
}

/* The paths are LP's: what RP says of them is nothing to LP, nor are they where there is one. */
static void heed(struct session *s, struct conn *c, const struct wire_hint *said)
{
	s->counts.hints_received++;
	c->channel->hint_heard = true;
	conn_tell_size(c, said->remaining);
	if (!s->ext->lp && ways_are_several(s->ext))
		opens_keep_to(s, c, said->paths);
	set_urgency(s, c, said->priority);
}

/*
 * The other end uses the id again only when this end has said that it sends no more. So whatever
 * comes early while the connection sends is not of the id's next use.
 */
static bool is_heard(const struct conn *c)
{
	return c && !c->ended && !c->out_ended && !c->flow;
}

static struct conn *heard_at(const struct extended *x, uint16_t id)
{
	const struct channel *ch = x->channel[id];

	return ch && is_heard(ch->conn) ? ch->conn : NULL;
}

/* --- what waits --- */

static struct waiting *waiting_of(struct extended *x, const struct channel *ch)
{
	struct list *pos;

	if (!ch->hint_waits)
		return NULL;
	for (pos = x->hints_waiting.next; pos != &x->hints_waiting; pos = pos->next) {
		struct waiting *w = list_entry(pos, struct waiting, member);

		if (w->of == ch)
			return w;
	}
	return NULL;
}

static struct waiting *waiting_new(struct extended *x, struct channel *ch)
{
	struct waiting *w;

	if (x->nhints_waiting == WAITING_MOST)
		return NULL;
	w = malloc(sizeof(*w));
	if (!w)
		return NULL;
	list_add_tail(&x->hints_waiting, &w->member);
	x->nhints_waiting++;
	w->of = ch;
	ch->hint_waits = true;
	return w;
}

static void waiting_free(struct extended *x, struct waiting *w)
{
	w->of->hint_waits = false;
	list_del(&w->member);
	x->nhints_waiting--;
	free(w);
}

/* One waits for each id: of two the one that stands beside the later message. */
static void waits_for(struct session *s, struct channel *ch,
		      const struct wire_hint *said, uint32_t number)
{
	struct waiting *w = waiting_of(s->ext, ch);

	if (w)
		count_dropped(s);
	if (w && wire_distance(number, w->number) < 0)
		return;
	if (!w)
		w = waiting_new(s->ext, ch);
	if (!w) {
		count_dropped(s);
		return;
	}
	w->said = *said;
	w->number = number;
}

/* A HINT that came later, and did not have to wait, may have been heeded meanwhile. */
void hints_due(struct session *s, struct channel *ch, uint32_t number)
{
	struct waiting *w = waiting_of(s->ext, ch);

	if (!w || w->number != number)
		return;
	if (!is_heard(ch->conn))
		drop_nobodys(s, &w->said);
	else if (ch->hint_heard)
		count_dropped(s);
	else
		heed(s, ch->conn, &w->said);
	waiting_free(s->ext, w);
}

/* --- of which use --- */

/*
 * The HINT stands beside message @number. If that is of an earlier use of the id, both are copies.
 * If it is a copy of the OPEN or of the first data message of this use, where HINTs stand because
 * their sender wants it so, the HINT is one as well, unless none was heeded in this use.
 */
static bool comes_late(const struct channel *ch, uint32_t number)
{
	int32_t ago = wire_distance(ch->order.next, number);
	/* A SYNACK is among the messages that the connection received, an OPEN is not. */
	int64_t behind_open = (int64_t)ch->conn->rx_messages - ago +
			      !ch->use.opener;

	return behind_open < 0 ||
	       (behind_open <= 1 && ago > 0 && ch->hint_heard);
}

static bool comes_early(const struct channel *ch, uint32_t number)
{
	int32_t ahead = wire_distance(number, ch->order.next);

	return ahead > 0 && ahead <= (int32_t)WIRE_NUMBER_WINDOW;
}

static void take_beside(struct session *s, const struct wire_hint *said,
			uint32_t number)
{
	struct channel *ch = ids_channel(s->ext, said->id);
	struct conn *c = heard_at(s->ext, said->id);

	if (!ch || (c && comes_late(ch, number)))
		count_dropped(s);
	else if (c)
		heed(s, c, said);
	else if (comes_early(ch, number))
		waits_for(s, ch, said, number);
	else
		drop_nobodys(s, said);
}

static void take_alone(struct session *s, const struct wire_hint *said)
{
	struct conn *c = heard_at(s->ext, said->id);

	if (c)
		heed(s, c, said);
	else
		drop_nobodys(s, said);
}

/*
 * What was read may end within the message behind the HINT. Its header is enough to judge the HINT
 * for a connection that is there. If none is, the HINT is judged when all of the message has come.
 */
static void take_last(struct session *s, struct leg *leg, const struct pipe *p)
{
	bool partly = p && p->partial.len;
	struct wire_head head;

	if (partly && !heard_at(s->ext, leg->hint.id))
		return;
	leg->last.what = LAST_ANY;
	if (partly && pipe_head(p, &head) && head.id == leg->hint.id)
		take_beside(s, &leg->hint, head.number);
	else
		take_alone(s, &leg->hint);
}

static void take_lasts(struct task *t)
{
	struct extended *x = container_of(t, struct extended, hints_task);
	unsigned int i;

	for (i = 0; i < x->s->npipes && session_is_up(x->s); i++) {
		struct leg *leg = &x->leg[i];

		if (leg->last.what == LAST_HINT)
			take_last(x->s, leg, x->s->pipes[i]);
		else
			leg->last.what = LAST_ANY;
	}
}

static void await_end(struct session *s)
{
	loop_after(s->engine->loop, &s->ext->hints_task);
}

void hints_opened(struct session *s, struct leg *leg, uint16_t id,
		  uint32_t number)
{
	leg->last = (struct last){ LAST_OPEN, id, number };
	await_end(s);
}

void hints_came(struct session *s, struct leg *leg, const struct last *before,
		const struct wire_hint *said)
{
	if (!are_spoken(s->ext)) {
		s->counts.dropped++;
	} else if (said->remaining > WIRE_HINT_MOST) {
		drop_too_large(s, said);
	} else if (before->what == LAST_OPEN && before->id == said->id) {
		take_beside(s, said, before->number);
	} else {
		leg->hint = *said;
		leg->last.what = LAST_HINT;
		await_end(s);
	}
}

void hints_followed(struct session *s, struct leg *leg,
		    const struct wire_msg *msg)
{
	leg->last.what = LAST_ANY;
	if (msg->id == leg->hint.id)
		take_beside(s, &leg->hint, msg->number);
	else
		take_alone(s, &leg->hint);
}

void hints_pipe_ended(struct session *s, struct leg *leg)
{
	if (leg->last.what == LAST_HINT)
		take_alone(s, &leg->hint);
	leg->last.what = LAST_ANY;
}

void hints_init(struct extended *x)
{
	list_init(&x->hints_due);
	list_init(&x->hints_waiting);
	loop_task_init(&x->hints_task, take_lasts);
}

void hints_fini(struct extended *x)
{
	loop_task_stop(&x->hints_task);
	while (!list_empty(&x->hints_waiting))
		waiting_free(x, list_first(&x->hints_waiting, struct waiting, member));
}
