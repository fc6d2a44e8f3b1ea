/* SPDX-License-Identifier: MIT */
/*
 * The way in: whose message is it, is it due, and to the socket with it.
 *
 * Memory is bounded here. Out of order, a session may hold REORDER_MAX_SESSION;
 * beyond it the largest holder is reset. In order, QUEUE_MAX for a connection and
 * QUEUE_MAX_SESSION for all: past it the pipes pause, until what is too much
 * was taken or PAUSE_MS went by without progress; then that connection is
 * reset. Because of bytes out of order pipes never pause: the message that fills
 * the gap may sit behind the stop. What is early is read later (reader).
 */
#include "../base/log.h"
#include "../conn/conn.h"
#include "session_inside.h"

#define PAUSE_LOOK (100 * NS_PER_MS)

/* For a reader that moves by steps. */
#define PATIENCE_STEPS 3
#define PATIENCE_MAX (15 * NS_PER_SEC)

/* Resume a little below the limit, or a slow reader toggles us at every byte. */
enum { QUEUE_RESUME = QUEUE_MAX - (1 << 20) };

/* --- pausing --- */

static bool too_much(const struct session *s)
{
	return s->in.full_queues || s->in.queued > QUEUE_MAX_SESSION;
}

static void update_pause(struct session *s)
{
	bool pause = too_much(s);
	unsigned int i;

	if (pause == s->in.paused || s->dead || s->stopping)
		return;
	s->in.paused = pause;
	for (i = 0; i < s->path.npipes; i++)
		pipe_pause(s->path.pipes[i], pause);
	if (pause) {
		s->counts.pauses++;
		s->in.paused_at = loop_clock();
		loop_timer_in(s->engine->loop, &s->in.pause_timer, PAUSE_LOOK);
	} else {
		s->in.paused_ns += loop_clock() - s->in.paused_at;
		loop_timer_stop(s->engine->loop, &s->in.pause_timer);
	}
}

static void set_queue_full(struct session *s, struct conn *c, bool full)
{
	if (c->queue_full == full)
		return;
	c->queue_full = full;
	if (full)
		s->in.full_queues++;
	else
		s->in.full_queues--;
	update_pause(s);
}

void inbound_queued(struct session *s, struct conn *c, size_t bytes)
{
	s->in.queued += bytes;
	if (c->queue.len > QUEUE_MAX)
		set_queue_full(s, c, true);
	update_pause(s);
}

void inbound_released(struct session *s, struct conn *c, size_t queued,
		      size_t early)
{
	if (early) {
		s->in.early -= early;
		holders_update(&s->in.holders, &c->reorder);
	}
	if (!queued)
		return;
	s->in.queued -= queued;
	if (c->queue_full && c->queue.len <= QUEUE_RESUME)
		set_queue_full(s, c, false);
	update_pause(s);
}

/* Nothing more can come for it, so it stops nobody. */
void inbound_over(struct session *s, struct conn *c)
{
	set_queue_full(s, c, false);
}

/*
 * PAUSE_MS for one that was not seen to take anything. One that was, takes by
 * steps: its kernel opens a closed window only once a sixteenth of a buffer of
 * megabytes is free. Then it gets the time of some such steps.
 */
static int64_t patience(const struct conn *c)
{
	int64_t steps = PATIENCE_STEPS * c->step;

	if (steps < PAUSE_MS * NS_PER_MS)
		return PAUSE_MS * NS_PER_MS;
	return steps < PATIENCE_MAX ? steps : PATIENCE_MAX;
}

static void give_up(struct session *s, struct conn *c)
{
	s->counts.queue_limit++;
	log_warn(s->engine->log, "session %u: connection %u took nothing for %.1f s while %zu bytes wait for it and the pipes pause: reset",
		 s->number, c->id, (double)patience(c) / (double)NS_PER_SEC,
		 c->queue.len);
	conn_refuse(c, CONN_END_LIMIT);
}

static struct conn *longest_queue(struct session *s)
{
	struct conn *most = NULL;
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (!most || c->queue.len > most->queue.len)
			most = c;
	}
	return most;
}

/*
 * Progress is what the application's side acknowledged. What its socket took
 * is too coarse: the kernel calls it writable in steps of a third of its
 * buffer, which a slow reader does not manage in PAUSE_MS.
 */
static bool has_stopped(const struct session *s, struct conn *c)
{
	int64_t now = loop_clock();
	uint64_t taken = c->rx_bytes - c->queue.len -
		(c->watch.fd < 0 ? 0 : sock_outstanding(c->watch.fd));

	if (taken != c->taken || c->taken_at < s->in.paused_at) {
		if (c->taken_at >= s->in.paused_at && now - c->taken_at > c->step)
			c->step = now - c->taken_at;
		c->taken = taken;
		c->taken_at = now;
	}
	return now - c->taken_at >= patience(c);
}

static void pause_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, in.pause_timer);
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (c->queue_full && has_stopped(s, c))
			give_up(s, c);
	}
	if (s->in.queued > QUEUE_MAX_SESSION) {
		struct conn *c = longest_queue(s);

		if (has_stopped(s, c))
			give_up(s, c);
	}
	if (s->in.paused)
		loop_timer_in(s->engine->loop, &s->in.pause_timer, PAUSE_LOOK);
}

int64_t inbound_reading_time(const struct session *s)
{
	return (s->in.paused ? s->in.paused_at : loop_clock()) -
		s->in.paused_ns;
}

/* --- out of order: the limits --- */

/* Its early data is dropped, and its SYN will be refused when it comes. */
static void drop_early(struct session *s, struct conn *c)
{
	s->counts.early_dropped++;
	log_warn(s->engine->log, "session %u: connection %u sent %zu bytes ahead of its SYN: dropped, and the SYN will be refused",
		 s->number, c->id, c->reorder.payload);
	c->lost_early = true;
	conn_drop_early(c);
}

static void limit_early(struct session *s, struct conn *c)
{
	if (!c->had_syn && c->reorder.payload > EARLY_MAX)
		drop_early(s, c);
	while (s->in.early > REORDER_MAX_SESSION) {
		struct reorder *q = holders_largest(&s->in.holders);
		struct conn *most;

		if (!q)
			return;
		most = container_of(q, struct conn, reorder);
		if (!most->had_syn) {
			drop_early(s, most);
			continue;
		}
		s->counts.reorder_limit++;
		log_warn(s->engine->log, "session %u: out of order, connection %u holds %zu of %zu bytes: reset",
			 s->number, most->id, most->reorder.bytes, s->in.early);
		conn_refuse(most, CONN_END_LIMIT);
	}
}

/* --- what is due --- */

static void take_syn(struct session *s, struct conn *c, const uint8_t *body)
{
	struct destination to = { .kind = DESTINATION_IPV4, .len = 4 };

	wire_get_syn(body, to.bytes, &to.port);
	if (conn_set_destination(c, &to) < 0 || c->lost_early ||
	    s->nconns > s->engine->settings->max_conns)
		conn_refuse(c, CONN_END_LIMIT);
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
	return !c->over && !(c->state == CONN_CLOSED);
}

/* What the message just taken released. */
static void take_early(struct session *s, struct conn *c)
{
	struct reorder_early *early;
	size_t before = c->reorder.bytes;

	while (listens(c) && (early = reorder_take(&c->reorder))) {
		s->in.early -= before - c->reorder.bytes;
		holders_update(&s->in.holders, &c->reorder);
		delivery_waited(s, c, early->came_at);
		take(s, c, early->type, early->body, early->body_len);
		/* take() may have flushed: it lives until the next flush. */
		delivery_keep(s, early);
		before = c->reorder.bytes;
	}
}

/* --- arrival --- */

static void put(struct session *s, struct conn *c, const struct pipe *p,
		const struct wire_msg *msg, uint64_t offset)
{
	size_t before = c->reorder.bytes;
	enum reorder_verdict verdict = reorder_put(&c->reorder, msg,
					loop_now(s->engine->loop));

	if (c->reorder.bytes != before) {
		s->in.early += c->reorder.bytes - before;
		holders_update(&s->in.holders, &c->reorder);
	}
	switch (verdict) {
	case REORDER_DUE:
		c->in_order++;
		take(s, c, (uint8_t)msg->type, msg->body, msg->body_len);
		if (c->reorder.count)
			take_early(s, c);
		if (c->reorder.count)
			gaps_note(s, c);
		break;
	case REORDER_EARLY:
		if (c->reorder.count == 1)
			gaps_note(s, c);
		limit_early(s, c);
		break;
	case REORDER_DUPLICATE:
		s->counts.duplicates++;
		break;
	case REORDER_TOO_FAR:
		s->counts.protocol++;
		log_warn(s->engine->log, "session %u: pipe %u, byte %llu, number: %u is too far ahead of %u (id %u): connection ended",
			 s->number, p->index, (unsigned long long)offset,
			 msg->number, c->reorder.next, c->id);
		conn_refuse(c, CONN_END_PROTOCOL);
		break;
	case REORDER_NO_MEMORY:
		conn_refuse(c, CONN_END_LIMIT);
		break;
	}
}

static struct conn *newcomer(struct session *s, const struct wire_msg *msg)
{
	struct conn *c = baseline_conn_new(s, msg->id);

	if (c && msg->type != WIRE_SYN)
		conn_await_syn(c);
	return c;
}

static struct conn *route(struct session *s, struct pipe *p,
			  const struct wire_msg *msg)
{
	bool accepts = s->role->open != NULL;
	unsigned int pipe = pipe_keeps_order(p) ? p->index : TABLE_NO_ORDER;
	struct table_route r = table_route(s->table, msg, pipe, accepts,
					   inbound_reading_time(s));

	if (r.evicted)
		conn_abort(r.evicted, CONN_END_PROTOCOL);
	baseline_mind_rest(s);
	if (r.verdict == TABLE_NEW)
		return newcomer(s, msg);
	if (r.verdict == TABLE_LATE)
		s->counts.late++;
	return r.conn;
}

bool inbound_expects(struct session *s, unsigned int pipe,
		     const struct wire_head *head, uint32_t *number)
{
	struct table_route r = table_foresee(s->table, head, pipe,
					     s->role->open != NULL);

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
	log_warn(s->engine->log, "session %u: pipe %u, byte %llu, %s: %s (id %u, number %u): %s",
		 s->number, p->index, (unsigned long long)offset,
		 wire_error_field(err), wire_error_text(err), msg->id,
		 msg->number,
		 c ? "connection ended" : "message dropped");
	if (c)
		conn_refuse(c, CONN_END_PROTOCOL);
}

/* Whose it is; a malformed SYN makes nobody a successor. */
static struct conn *accused(struct session *s, struct pipe *p,
			    const struct wire_msg *msg)
{
	struct wire_msg plain = *msg;

	plain.type = WIRE_DATA;
	return msg->id ? route(s, p, &plain) : NULL;
}

bool inbound_message(struct session *s, struct pipe *p,
		     const struct wire_msg *msg, uint64_t offset)
{
	enum wire_error err = wire_check(msg, !s->role->open);
	struct conn *c;

	if (s->dead)
		return false;
	if (s->stopping)
		return true;
	if (err) {
		delivery_flush(s);
		condemn(s, p, accused(s, p, msg), msg, offset, err);
		return !s->dead;
	}
	c = route(s, p, msg);
	if (!c)
		return true;
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
	s->in.pause_timer.fire = pause_timer;
	gaps_start(s);
	holders_init(&s->in.holders);
	reading_start(s);
}

void inbound_stop(struct session *s)
{
	loop_timer_stop(s->engine->loop, &s->in.pause_timer);
	gaps_stop(s);
	reading_stop(s);
}
