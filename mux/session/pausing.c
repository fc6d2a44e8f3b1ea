/* SPDX-License-Identifier: MIT */
/*
 * What came in order and applications do not take. The baseline has no way to
 * ask for less, so past QUEUE_MAX for a connection, or QUEUE_MAX_SESSION for
 * all, the pipes are not read: they pause. That stops every connection, hence
 * it is bounded in three ways.
 *
 * Who takes nothing for PAUSE_MS while pipes pause on its account is reset. So
 * is who takes something, but delays the others for longer than stall allows.
 * And at the limit of the session all go that took nothing lately, those with
 * the longest queue first, until half of the limit is free.
 *
 * Progress is what the application's side acknowledged. What its socket took
 * is too coarse: the kernel calls it writable in steps of a third of its
 * buffer, which a slow reader does not manage in PAUSE_MS.
 */
#include <stdlib.h>

#include "../base/log.h"
#include "../base/plural.h"
#include "../base/sock.h"
#include "../conn/conn.h"
#include "flow.h"
#include "session_inside.h"

#define LOOK (100 * NS_PER_MS)

/* For a reader that moves by steps. */
#define PATIENCE_STEPS 3
#define PATIENCE_MAX (15 * NS_PER_SEC)

enum {
	/* Resume a little below, or a slow reader toggles us at every byte. */
	RESUME_BELOW = 1 << 20,
	/* From here on who takes nothing is looked for; so much is left then. */
	SESSION_HALF = QUEUE_MAX_SESSION / 2,
};

/* --- when pipes pause --- */

static void pause_pipes(struct session *s, bool pause)
{
	unsigned int i;

	s->in.paused = pause;
	for (i = 0; i < s->paths.npipes; i++)
		pipe_pause(s->paths.pipes[i], pause);
	if (pause) {
		s->counts.pauses++;
		s->in.paused_at = loop_clock();
	} else {
		s->in.paused_ns += loop_clock() - s->in.paused_at;
	}
}

static void update(struct session *s)
{
	bool pause = s->in.full_queues || s->in.full;

	if (s->dead || s->stopping)
		return;
	if (pause != s->in.paused)
		pause_pipes(s, pause);
	if ((pause || s->in.queued > SESSION_HALF) && !s->in.pause_timer.slot)
		loop_timer_in(s->engine->loop, &s->in.pause_timer, LOOK);
}

/* --- for how long: who is to blame, and for how much --- */

/* LP opens all connections, so it knows when there are no others to delay. */
static bool is_alone(const struct session *s)
{
	return !session_accepts(s) && table_conns(s->table) == 1;
}

static void charge(struct session *s, struct conn *c)
{
	struct stall *stall = &c->backlog->stall;

	if (is_alone(s))
		stall_excuse(stall, loop_clock(), conn_taken(c));
	else
		stall_charge(stall, loop_clock(), conn_taken(c));
}

static void set_queue_full(struct session *s, struct conn *c, bool full)
{
	if (c->queue_full == full)
		return;
	c->queue_full = full;
	if (full) {
		s->in.full_queues++;
		c->backlog->full_at = loop_clock();
		stall_begin(&c->backlog->stall, c->backlog->full_at,
			    conn_taken(c));
	} else {
		s->in.full_queues--;
		charge(s, c);
	}
	update(s);
}

static void set_full(struct session *s, bool full)
{
	if (s->in.full == full)
		return;
	s->in.full = full;
	if (full)
		stall_begin(&s->in.stall, loop_clock(), s->in.taken);
	else
		stall_charge(&s->in.stall, loop_clock(), s->in.taken);
	update(s);
}

void pausing_queued(struct session *s, struct conn *c, size_t bytes)
{
	s->in.queued += bytes;
	inbound_charge(s, (int64_t)bytes);
	if (conn_queued(c) > QUEUE_MAX)
		set_queue_full(s, c, true);
	if (s->in.queued > QUEUE_MAX_SESSION)
		set_full(s, true);
	update(s);
}

void pausing_released(struct session *s, struct conn *c, size_t queued,
		      size_t early)
{
	inbound_charge(s, -(int64_t)(queued + early));
	if (early) {
		s->in.early -= early;
		ranking_update(&s->in.ranking, &c->reorder);
	}
	if (!queued)
		return;
	s->in.queued -= queued;
	s->in.taken += queued;
	if (conn_queued(c) <= QUEUE_MAX - RESUME_BELOW)
		set_queue_full(s, c, false);
	if (s->in.queued <= QUEUE_MAX_SESSION - RESUME_BELOW)
		set_full(s, false);
}

/* Nothing more can come for it, so it stops nobody. */
void pausing_conn_ended(struct session *s, struct conn *c)
{
	set_queue_full(s, c, false);
}

int64_t pausing_reading_time(const struct session *s)
{
	return (s->in.paused ? s->in.paused_at : loop_clock()) -
		s->in.paused_ns;
}

/* --- progress --- */

/* Since when was it not seen to take anything? It has a backlog. */
static int64_t look_at(struct conn *c, int64_t now)
{
	struct backlog *b = c->backlog;
	uint64_t taken = conn_taken(c) -
		(c->watch.fd < 0 ? 0 : sock_outstanding(c->watch.fd));

	if (taken != b->taken || !b->taken_at) {
		if (c->queue_full && b->taken_at >= b->full_at &&
		    now - b->taken_at > b->step)
			b->step = now - b->taken_at;
		b->taken = taken;
		b->taken_at = now;
	}
	return b->taken_at;
}

/*
 * PAUSE_MS for one that was not seen to take anything. One that was, takes by
 * steps: its kernel opens a closed window only once a sixteenth of a buffer of
 * megabytes is free. Then it gets the time of some such steps.
 */
static int64_t patience(const struct conn *c)
{
	int64_t steps = PATIENCE_STEPS * c->backlog->step;

	if (steps < PAUSE_MS * NS_PER_MS)
		return PAUSE_MS * NS_PER_MS;
	return steps < PATIENCE_MAX ? steps : PATIENCE_MAX;
}

static void say_idle(const struct session *s, const struct conn *c, int64_t ns)
{
	log_warn(s->engine->log, "session %u: connection %u took nothing for %.1f s while %zu bytes wait for it and the pipes pause: reset",
		 s->number, c->id, (double)ns / NS_PER_SEC, conn_queued(c));
}

static void say_slow(const struct session *s, const struct conn *c)
{
	log_warn(s->engine->log, "session %u: connection %u is read too slowly and held up all others for %d s, %zu bytes wait for it: reset",
		 s->number, c->id, STALL_MS / 1000, conn_queued(c));
}

static void judge(struct session *s, struct conn *c, int64_t now)
{
	int64_t since = look_at(c, now);
	bool idle;

	if (since < c->backlog->full_at)
		since = c->backlog->full_at;
	charge(s, c);
	idle = now - since >= patience(c);
	if (!idle && !stall_is_spent(&c->backlog->stall))
		return;
	if (session_notes(s, INCIDENT_QUEUE)) {
		if (idle)
			say_idle(s, c, now - since);
		else
			say_slow(s, c);
	}
	s->counts.queue_limit++;
	conn_reset(c, CONN_END_LIMIT);
}

/* --- the limit of the session --- */

struct crowd {			/* those that may have to go */
	struct conn **conn;
	unsigned int n;
};

static int longer_first(const void *a, const void *b)
{
	const struct conn *x = *(struct conn *const *)a;
	const struct conn *y = *(struct conn *const *)b;

	return (conn_queued(x) < conn_queued(y)) - (conn_queued(x) > conn_queued(y));
}

/* Those that @is true of, the first by @order first. */
static struct crowd gather(struct session *s,
			   bool (*is)(const struct conn *c, int64_t since),
			   int64_t since,
			   int (*order)(const void *a, const void *b))
{
	struct crowd crowd = {
		.conn = malloc((s->nconns + 1) * sizeof(struct conn *)),
	};
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (crowd.conn && is(c, since))
			crowd.conn[crowd.n++] = c;
	}
	if (crowd.n)
		qsort(crowd.conn, crowd.n, sizeof(*crowd.conn), order);
	return crowd;
}

/* It waits with something, and took nothing since. */
static bool is_idle(const struct conn *c, int64_t since)
{
	return conn_queued(c) && c->backlog->taken_at <= since;
}

/* Until half of the limit is free. One line for all of them. */
static void thin_out(struct session *s, int64_t since, const char *what)
{
	struct crowd crowd = gather(s, is_idle, since, longer_first);
	size_t before = s->in.queued;
	unsigned int i;

	for (i = 0; i < crowd.n && s->in.queued > SESSION_HALF; i++) {
		s->counts.queue_limit++;
		conn_reset(crowd.conn[i], CONN_END_LIMIT);
	}
	if (i && session_notes(s, INCIDENT_QUEUE))
		log_warn(s->engine->log, "session %u: %zu bytes wait for applications, more than %d: reset %u connection%s that %s",
			 s->number, before, QUEUE_MAX_SESSION, i, plural(i),
			 what);
	free(crowd.conn);
}

static void judge_all(struct session *s, int64_t now)
{
	stall_charge(&s->in.stall, now, s->in.taken);
	thin_out(s, now - PAUSE_MS * NS_PER_MS, "took nothing for 2 s");
	if (s->in.full && stall_is_spent(&s->in.stall))
		thin_out(s, now, "had the most of them");
}

_Static_assert(PAUSE_MS == 2000, "a log line names it");

/* --- the limit of an address, or of the process --- */

static size_t charged(const struct conn *c)
{
	const struct session *s = c->owner->self;

	return conn_queued(c) + s->dialect->early(c) +
	       (c->flow ? flow_charged(c->flow) : 0);
}

static bool is_charged(const struct conn *c, int64_t since)
{
	(void)since;
	return charged(c) > 0;
}

static int more_first(const void *a, const void *b)
{
	const struct conn *x = *(struct conn *const *)a;
	const struct conn *y = *(struct conn *const *)b;

	return (charged(x) < charged(y)) - (charged(x) > charged(y));
}

/* Datagrams, and then those that have most, whether they are read or not. */
void pausing_shed(struct hoard *h, size_t bytes)
{
	struct session *s = container_of(h, struct session, hoard);
	size_t before = h->bytes, dropped;
	struct crowd crowd;
	unsigned int i;

	if (s->dialect->shed_datagrams)
		s->dialect->shed_datagrams(s, bytes);
	dropped = before - h->bytes;
	crowd = gather(s, is_charged, 0, more_first);
	for (i = 0; i < crowd.n && before - h->bytes < bytes; i++) {
		s->counts.queue_limit++;
		conn_reset(crowd.conn[i], CONN_END_LIMIT);
		if (s->dialect->let_go)
			s->dialect->let_go(s, crowd.conn[i]);
	}
	if (s->dialect->shed && before - h->bytes < bytes)
		s->dialect->shed(s, bytes - (before - h->bytes));
	if (s->dialect->give_up && h->bytes == before)
		s->dialect->give_up(s);
	if (session_notes(s, INCIDENT_MEMORY) && (i || dropped))
		log_warn(s->engine->log, "session %u: of all it holds most, %zu bytes, and there is too much: reset %u connection%s, dropped datagrams of %zu bytes",
			 s->number, before, i, plural(i), dropped);
	free(crowd.conn);
}

static void pause_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, in.pause_timer);
	int64_t now = loop_clock();
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (c->queue_full)
			judge(s, c, now);
		else if (conn_queued(c) && s->in.queued > SESSION_HALF)
			look_at(c, now);
	}
	if (s->in.full)
		judge_all(s, now);
	update(s);
}

void pausing_start(struct session *s)
{
	s->in.pause_timer.fire = pause_timer;
}

void pausing_stop(struct session *s)
{
	loop_timer_stop(s->engine->loop, &s->in.pause_timer);
}
