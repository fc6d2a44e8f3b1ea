/* SPDX-License-Identifier: MIT */
/*
 * What the other end may send: credit for each connection, granted ahead of what
 * its application took. So one that does not read stops itself alone, and pipes
 * are always read.
 *
 * A session's first connection begins with WINDOW_FIRST: twice what eight new pipes send in
 * their first round trip, so that it delays no small object, and none with a gap that is
 * repaired meanwhile. A later one finds pipes that have grown, and begins with half of what one
 * before it reached, as long as little of the memory is out. When its application takes a
 * quarter of it within a round trip, it is doubled: who sends doubles what is under way each
 * round trip at first, and shall not meet the window. That round trip begins with bytes that
 * come: when it began with OPEN, most of it had passed before the first ones did. Bytes that wait
 * for others before them count as taken, if the application leaves nothing lying: no
 * application can take them sooner, and behind what goes over a far path those of a near one
 * wait for most of the far round trip. It is doubled as well when half of it lies behind a gap, as
 * TCP takes seconds where the repair of one is lost, too. What is granted and what waits for
 * applications is, together, at most window_memory for a session, and WINDOW_LEAST for each
 * connection, which it has in any case. A sixteenth of the memory is for those whose application
 * takes what it has, and an eighth for those that took more than sockets swallow by themselves.
 * When all else is out, of those whose application leaves bytes and took none for
 * WINDOW_IDLE_SECONDS the one that has most is reset. A connection that has ended on the pipes is
 * one of them as long as it has bytes to write: it is granted nothing more, but its application
 * may never read.
 *
 * What was granted cannot be taken back: an id whose connection has ended keeps the
 * remainder for its next one, and so does a connection to which nothing comes any more.
 * That is counted apart, and may be as much again.
 *
 * So may what an opener sends before it hears how little it was granted. If all of that comes
 * at once and nobody reads, more is on its way than window_memory. It is not kept: who has
 * most lying there is reset at once, those first that took nothing in the last second.
 */
#include "../base/log.h"
#include "../conn/conn.h"
#include "extended.h"

/* Round trips on loopback are shorter than a batch of events. */
#define ROUND_LEAST (10 * NS_PER_MS)
#define LOOK NS_PER_SEC
/* Of the memory a part in so many is for connections that begin with more than WINDOW_FIRST. */
enum { FIRST_SHARE = 8 };

/* What its application left lying. */
static size_t left_by(const struct channel *ch)
{
	return ch->conn ? conn_queued(ch->conn) : 0;
}

/* That, and what of this read is still to be offered to it, and may be left lying as well. */
static size_t waiting(const struct session *s, const struct channel *ch)
{
	return left_by(ch) + delivery_gathered(&s->in.delivery, ch->conn);
}

/* What the channel has of the memory. */
static uint64_t share(const struct session *s, const struct channel *ch)
{
	return channel_promised(ch) + waiting(s, ch);
}

static uint64_t committed(const struct session *s)
{
	return s->ext->promised + s->in.delivery.len + s->in.queued;
}

/*
 * How much of the memory is for whom. Who begins shall leave some for those who take what they
 * have, and these, of whom it is not known yet whether they will go on, for those who do. What
 * every connection has in any case must not take that from them either.
 */
enum claim { CLAIM_BEGINS, CLAIM_TAKES, CLAIM_READS };

static uint64_t limit_for(const struct session *s, enum claim claim)
{
	uint64_t limit = s->engine->settings->window_memory;

	switch (claim) {
	case CLAIM_BEGINS:
		return limit - limit / 8 - limit / 16;
	case CLAIM_TAKES:
		return limit - limit / 8;
	case CLAIM_READS:
		break;
	}
	return limit + (uint64_t)s->nconns * WINDOW_LEAST;
}

static uint64_t memory_left(const struct session *s, enum claim claim)
{
	uint64_t most = 2 * (uint64_t)s->engine->settings->window_memory;
	uint64_t with_idle = s->ext->idle < most ? most - s->ext->idle : 0;
	uint64_t limit = limit_for(s, claim);

	if (with_idle < limit)
		limit = with_idle;
	return limit > committed(s) ? limit - committed(s) : 0;
}

/* More than sockets swallow of whom nobody reads. */
static enum claim claim_of(const struct channel *ch)
{
	return conn_taken(ch->conn) >= WINDOW_FIRST ? CLAIM_READS : CLAIM_TAKES;
}

/* Have the channel's share be @want, as far as memory allows. */
static bool grant(struct session *s, struct channel *ch, uint64_t want,
		  enum claim claim)
{
	uint64_t has = share(s, ch), before = channel_promised(ch);
	uint64_t left = memory_left(s, claim);
	uint64_t told = ch->in.granted;

	if (want > has + left)
		want = has + left;
	if (want < WINDOW_LEAST)
		want = WINDOW_LEAST;
	if (want <= has)
		return false;
	credit_grant(&ch->in, want - waiting(s, ch));
	s->ext->promised += channel_promised(ch) - before;
	return ch->in.granted > told;
}

/* What @ch was granted is counted with the others' or apart. */
static void set_in_use(struct session *s, struct channel *ch, bool in_use)
{
	uint64_t bytes;

	if (ch->in_use == in_use)
		return;
	bytes = channel_promised(ch);
	ch->in_use = in_use;
	*(in_use ? &s->ext->promised : &s->ext->idle) += bytes;
	*(in_use ? &s->ext->idle : &s->ext->promised) -= bytes;
}

/* With what a connection of the session reached, as long as most of the memory is there. */
static uint32_t first(const struct session *s)
{
	uint64_t memory = s->engine->settings->window_memory;

	return committed(s) + s->ext->idle < memory / FIRST_SHARE ?
		s->ext->window : WINDOW_FIRST;
}

void windows_begin(struct session *s, struct channel *ch)
{
	set_in_use(s, ch, true);
	ch->window = first(s);
	ch->taken = ch->round_from = (uint32_t)ch->in.taken;
	ch->taken_at = ch->round_at = loop_now(s->engine->loop);
	grant(s, ch, ch->window, CLAIM_BEGINS);
	if (!s->ext->window_timer.slot)
		loop_timer_in(s->engine->loop, &s->ext->window_timer, LOOK);
}

void windows_end(struct session *s, struct conn *c)
{
	struct channel *ch = c->channel;

	set_in_use(s, ch, false);
	list_del(&ch->line);
	if (c->backlog)
		c->backlog->taken_at = ch->taken_at;
}

/* Bytes that its application took, or would have taken if none before them were missing. */
static uint32_t progress(const struct channel *ch)
{
	size_t left = left_by(ch);
	size_t early = left ? 0 : reorder_payload(&ch->order);

	return (uint32_t)(ch->in.taken - left + early);
}

static void begin_round(struct channel *ch, int64_t now)
{
	ch->round_from = progress(ch);
	ch->round_at = now;
}

/* What goes over a far path has to be granted as long before as it takes there. */
static bool round_ended(const struct session *s, const struct channel *ch,
			int64_t now)
{
	int64_t ns = now - ch->round_at;

	return ns > ROUND_LEAST && ns > paths_farthest(&s->paths);
}

void windows_arrival(const struct session *s, struct channel *ch)
{
	int64_t now = loop_now(s->engine->loop);

	/* What lies there is taken late, whatever comes behind it. */
	if (!left_by(ch) && round_ended(s, ch, now))
		begin_round(ch, now);
}

bool windows_spend(struct session *s, struct channel *ch, size_t len)
{
	uint64_t before = channel_promised(ch);
	bool allowed;

	set_in_use(s, ch, ch->conn);
	allowed = credit_take(&ch->in, len);
	*(ch->in_use ? &s->ext->promised : &s->ext->idle) -=
		before - channel_promised(ch);
	return allowed;
}

static void double_window(struct channel *ch)
{
	if (ch->window < WINDOW_MOST)
		ch->window *= 2;
}

/* A quarter of the window was taken: in how long? */
static void end_round(struct session *s, struct channel *ch, int64_t now)
{
	if (!round_ended(s, ch, now)) {
		double_window(ch);
		/* Half of it is twice what was taken within a round trip, at least. */
		if (ch->window / 2 > s->ext->window)
			s->ext->window = ch->window / 2;
	}
	begin_round(ch, now);
}

/*
 * Half of the window lies behind a gap, and nothing with the application: if the gap stays, the
 * sender is soon stopped by it alone, though all other pipes could send.
 */
static bool is_filled_by_a_gap(const struct channel *ch)
{
	return !left_by(ch) && reorder_payload(&ch->order) >= ch->window / 2;
}

/*
 * Bytes may overtake the SYNACK that answers this end's OPEN. Nothing is granted for them before it
 * has come: until then the channel stands in no line of those whose WINDOW is to be sent.
 */
static bool may_grant(const struct channel *ch)
{
	const struct use *use = &ch->use;

	return use->open && !use->peer_ended && !use->reset &&
	       (use->answered || !use->opener);
}

/* Who has still to answer tells it by SYNACK. */
static void tell(struct session *s, struct channel *ch)
{
	if (!ch->use.opener && !ch->use.answered)
		return;
	list_move_tail(&s->ext->windows_due, &ch->line);
	loop_after(s->engine->loop, &s->out.pump);
}

static void widen(struct session *s, struct channel *ch, int64_t now)
{
	if (!may_grant(ch))
		return;
	/* It may be less than before: what is early no longer waits for the application. */
	if ((int32_t)(progress(ch) - ch->round_from) >=
	    (int32_t)(ch->window / 4))
		end_round(s, ch, now);
	if (is_filled_by_a_gap(ch))
		double_window(ch);
	if (share(s, ch) <= ch->window / 2 && grant(s, ch, ch->window, claim_of(ch)))
		tell(s, ch);
}

static void taken_from(struct session *s, struct channel *ch, int64_t now)
{
	uint32_t taken = (uint32_t)(ch->in.taken - left_by(ch));

	if (taken == ch->taken)
		return;
	ch->taken = taken;
	ch->taken_at = now;
	widen(s, ch, now);
}

void windows_taken(struct session *s, struct conn *c)
{
	int64_t now = loop_now(s->engine->loop);

	/* What is dropped with its socket was not taken. */
	if (c->watch.fd < 0)
		return;
	if (!c->ended)
		taken_from(s, c->channel, now);
	else if (c->backlog)
		c->backlog->taken_at = now;
}

void windows_early(struct session *s, struct channel *ch)
{
	if (!ch->conn || ch->conn->flow)
		return;
	set_in_use(s, ch, true);
	widen(s, ch, loop_now(s->engine->loop));
}

/* --- those who take nothing --- */

/* When its application was seen to take something. Once it has ended its channel is another's. */
static int64_t taken_at(const struct conn *c)
{
	if (!c->ended)
		return c->channel->taken_at;
	return c->backlog ? c->backlog->taken_at : 0;
}

static bool is_idle(const struct conn *c, int64_t now)
{
	return now - taken_at(c) >= WINDOW_IDLE_SECONDS * NS_PER_SEC;
}

/* The memory that is free without @c. */
static uint64_t takes(const struct session *s, const struct conn *c)
{
	return c->ended ? conn_queued(c) : share(s, c->channel);
}

/* May it be reset for what it takes? */
static bool is_much(const struct session *s, const struct conn *c)
{
	return takes(s, c) > (c->ended ? 0 : WINDOW_FIRST);
}

/*
 * Those to which nothing comes have done nothing wrong, and are counted apart. Of the
 * others that are idle, the one that has most.
 */
static struct conn *most_idle(struct session *s, int64_t now)
{
	struct conn *most = NULL;
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (c->fin_pending == WIRE_REASON_RST || !is_idle(c, now))
			continue;
		if (!c->ended && !conn_queued(c))
			set_in_use(s, c->channel, false);
		else if (is_much(s, c) && (!most || takes(s, c) > takes(s, most)))
			most = c;
	}
	return most;
}

/* --- no more waits than was said --- */

static bool is_too_much(const struct session *s)
{
	return s->in.queued > s->engine->settings->window_memory +
			      (uint64_t)s->nconns * WINDOW_LEAST;
}

/* Of those that took nothing for @ns, who has most lying there. */
static struct conn *most_queued(struct session *s, int64_t now, int64_t ns)
{
	struct conn *most = NULL;
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (conn_queued(c) && now - taken_at(c) >= ns &&
		    (!most || conn_queued(c) > conn_queued(most)))
			most = c;
	}
	return most;
}

static void limit_queued(struct task *t)
{
	struct session *s = container_of(t, struct extended, window_task)->s;
	int64_t now = loop_now(s->engine->loop);

	while (is_too_much(s)) {
		struct conn *c = most_queued(s, now, NS_PER_SEC);

		if (!c)
			c = most_queued(s, now, 0);
		if (!c)
			return;
		s->counts.queue_limit++;
		if (session_notes(s, INCIDENT_QUEUE))
			log_warn(s->engine->log, "session %u: connection %u has most, %zu bytes, of what waits for applications, which is too much: reset",
				 s->number, c->id, conn_queued(c));
		conn_reset(c, CONN_END_LIMIT);
	}
}

void windows_queued(struct session *s)
{
	if (is_too_much(s))
		loop_after(s->engine->loop, &s->ext->window_task);
}

static void look(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, window_timer);
	struct session *s = x->s;
	struct conn *c;

	if (!memory_left(s, CLAIM_BEGINS) &&
	    (c = most_idle(s, loop_now(s->engine->loop)))) {
		s->counts.queue_limit++;
		if (session_notes(s, INCIDENT_QUEUE))
			log_warn(s->engine->log, "session %u: connection %u took nothing for %d s and has %llu bytes of the memory for windows, which is out: reset",
				 s->number, c->id, WINDOW_IDLE_SECONDS,
				 (unsigned long long)takes(s, c));
		conn_reset(c, CONN_END_LIMIT);
	}
	if (s->nconns)
		loop_timer_in(s->engine->loop, t, LOOK);
}

void windows_init(struct extended *x)
{
	x->window = WINDOW_FIRST;
	list_init(&x->windows_due);
	x->window_timer.fire = look;
	loop_task_init(&x->window_task, limit_queued);
}

void windows_stop(struct extended *x)
{
	loop_timer_stop(x->s->engine->loop, &x->window_timer);
	loop_task_stop(&x->window_task);
}
