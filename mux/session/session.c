/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/log.h"
#include "../conn/conn.h"
#include "orphan.h"
#include "session_inside.h"

/* --- connections --- */

static void conn_is_ready(struct conn *c)
{
	struct session *s = c->owner->self;

	sched_ready(&s->sched, c, loop_now(s->engine->loop));
	loop_after(s->engine->loop, &s->out.pump);
}

static void conn_is_idle(struct conn *c)
{
	struct session *s = c->owner->self;

	sched_idle(&s->sched, c, loop_now(s->engine->loop));
}

static void conn_has_queued(struct conn *c, size_t bytes)
{
	struct session *s = c->owner->self;

	s->dialect->queued(s, c, bytes);
}

static void conn_has_released(struct conn *c, size_t queued, size_t early)
{
	struct session *s = c->owner->self;

	s->dialect->released(s, c, queued, early);
}

static void conn_has_moved(struct conn *c, int from)
{
	struct session *s = c->owner->self;

	if (c->flow) {
		if (c->state == CONN_CLOSED)
			flows_closed(c);
		return;
	}
	if (s->role->moved)
		s->role->moved(s, c, from);
}

void session_tell_room(struct session *s)
{
	if (s->role->room && !s->dead && !s->stopping)
		s->role->room(s);
}

static void conn_has_ended(struct conn *c)
{
	struct session *s = c->owner->self;

	sched_forget(&s->sched, c, loop_now(s->engine->loop));
	s->dialect->conn_ended(s, c);
	recording_conn_ended(s, c);
	s->engine->gone.ended[c->end]++;
	session_tell_room(s);
}

/* How much that is matters to some policies alone, and where there is a choice of paths. */
static void conn_has_filled(struct conn *c)
{
	struct session *s = c->owner->self;

	if (c->unseen) {
		c->unseen = false;
		s->role->first_bytes(s, c);
	}
	if (s->sched.conns->by_size ||
	    (s->paths.npaths > 1 && s->sched.path.policy->by_size))
		conn_measure(c);
	if (s->sched.path.policy->twice == PATH_TWICE_LAST)
		conn_wrote(c, loop_now(s->engine->loop));
}

static void conn_has_lost(struct conn *c)
{
	struct session *s = c->owner->self;

	if (s->dialect->conn_lost && session_is_up(s))
		s->dialect->conn_lost(s, c);
}

static void conn_is_gone(struct conn *c)
{
	struct session *s = c->owner->self;

	if (s->dialect->conn_gone)
		s->dialect->conn_gone(s, c);
	s->nconns--;
	if (c->turned_away)
		session_turned_away_gone(s);
	else
		s->engine->conns--;
	conn_free(c);
	engine_balance(s->engine);
	session_tell_room(s);
}

static const struct conn_ops conn_ops = {
	.ready = conn_is_ready,
	.idle = conn_is_idle,
	.queued = conn_has_queued,
	.released = conn_has_released,
	.moved = conn_has_moved,
	.lost = conn_has_lost,
	.filled = conn_has_filled,
	.missized = refusing_missized,
	.ended = conn_has_ended,
	.gone = conn_is_gone,
};

struct conn *session_conn_new(struct session *s, uint16_t id)
{
	struct conn *c = conn_new(&s->conn_owner, id);

	if (!c)
		return NULL;
	list_add_tail(&s->conns, &c->member);
	if (s->engine->settings->http_sizes)
		conn_read_sizes(c);
	s->nconns++;
	s->engine->conns++;
	engine_balance(s->engine);
	return c;
}

bool session_is_up(const struct session *s)
{
	return !s->dead && !s->stopping;
}

/* --- pipes --- */

__attribute__((format(printf, 2, 0)))
static void fail(struct session *s, const char *fmt, va_list args)
{
	if (s->dead || s->stopping)
		return;
	/*
	 * What was gathered lies in the read buffer, and is for connections
	 * that may be gone by the time the session is.
	 */
	delivery_flush(s);
	s->dead = true;
	vsnprintf(s->why, sizeof(s->why), fmt, args);
	loop_after(s->engine->loop, &s->end);
}

static bool pipe_message(struct pipe *p, const struct wire_msg *msg,
			 uint64_t offset)
{
	struct session *s = p->owner;

	return s->dialect->message(s, p, msg, offset);
}

static void pipe_readable(struct pipe *p)
{
	reading_ready(p->owner, p);
}

/*
 * A pipe has ended. Where the session is ending anyway nothing is lost by that;
 * else its dialect knows what it means.
 */
__attribute__((format(printf, 3, 4)))
static void lose_pipe(struct pipe *p, bool broke, const char *fmt, ...)
{
	struct session *s = p->owner;
	char why[sizeof(s->why)];
	va_list args;

	s->open_pipes--;
	if (s->stopping) {
		if (!s->open_pipes)
			loop_after(s->engine->loop, &s->end);
		return;
	}
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	s->dialect->pipe_ended(s, p, broke, why);
}

static void pipe_broken(struct pipe *p, const char *what, const char *detail)
{
	struct session *s = p->owner;

	if (!s->stopping && session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: pipe %u, %s: session ended",
			 s->number, p->index, detail);
	lose_pipe(p, true, "pipe %u brought %s", p->index, what);
}

static void pipe_ended(struct pipe *p, int err)
{
	if (err)
		lose_pipe(p, false, "pipe %u failed: %s", p->index,
			  pipe_failure(p, err));
	else
		lose_pipe(p, false, "pipe %u was closed by the other end",
			  p->index);
}

static void pipe_writable(struct pipe *p)
{
	struct session *s = p->owner;

	if (!s->stopping) {
		loop_after(s->engine->loop, &s->out.pump);
	} else if (!p->queue) {
		pipe_want(p, false);
		pipe_shut(p);
	}
}

static void pipe_acked(struct pipe *p, const struct ack_asked *what,
		       int64_t at)
{
	outbound_acked(p->owner, p, what, at);
}

static size_t pipe_in_flight(const struct pipe *p)
{
	return path_in_flight(p->path);
}

static const struct pipe_ops pipe_ops = {
	.acked = pipe_acked,
	.in_flight = pipe_in_flight,
	.message = pipe_message,
	.readable = pipe_readable,
	.broken = pipe_broken,
	.ended = pipe_ended,
	.writable = pipe_writable,
};

static void bury(struct task *t)
{
	struct session *s = container_of(t, struct session, bury);

	while (!list_empty(&s->lost_pipes))
		pipe_free(list_first(&s->lost_pipes, struct pipe, lost));
}

void session_lose_pipe(struct session *s, struct pipe *p)
{
	layered_leaves(s, p->layer);
	if (p->watch.fd >= 0)
		s->open_pipes--;
	pipe_forsake(p);
	pipe_drop_queue(p);
	paths_remove(&s->paths, p);
	sums_add(s->engine->gone.pipe, pipe_figures, p);
	standby_find(s);
	reading_remove(s, p);
	s->pipes[p->index] = NULL;
	list_add_tail(&s->lost_pipes, &p->lost);
	loop_after(s->engine->loop, &s->bury);
}

/* --- the end --- */

/*
 * Those that had ended in order go on writing what they have. Where an orderly
 * end depended on what may still come, it is none.
 */
static void abort_conns(struct session *s, enum conn_end why)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (!c->ended || c->state == CONN_HEEDING)
			conn_abort(c, why);
	}
}

static void stop_timers(struct session *s)
{
	struct loop *loop = s->engine->loop;

	loop_timer_stop(loop, &s->out.timer);
	inbound_stop(s);
	survey_stop(s);
	standby_stop(s);
	loop_timer_stop(loop, &s->stop_timer);
	loop_task_stop(&s->out.pump);
	loop_task_stop(&s->end);
}

void session_free(struct session *s)
{
	unsigned int i;

	s->engine->conns -= s->nconns - s->nturned_away;
	conn_owner_fini(&s->conn_owner);
	while (!list_empty(&s->conns))
		orphan(s->engine, list_first(&s->conns, struct conn, member));
	engine_balance(s->engine);
	stop_timers(s);
	for (i = 0; i < s->npipes; i++) {
		if (s->pipes[i])
			sums_add(s->engine->gone.pipe, pipe_figures,
				 s->pipes[i]);
		pipe_free(s->pipes[i]);
	}
	sums_add(s->engine->gone.counts, counts_figures, &s->counts);
	list_del(&s->all);
	bury(&s->bury);
	loop_task_stop(&s->bury);
	s->dialect->fini(s);
	hoard_fini(&s->hoard);
	budget_fini(&s->own);
	run_pool_fini(&s->shared.pool);
	free(s);
}

static void end(struct task *t)
{
	struct session *s = container_of(t, struct session, end);

	s->dead = true;
	abort_conns(s, CONN_END_SESSION);
	if (s->engine->stats) {
		survey_sample(s, "end");
		stats_counters(s->engine->stats, s->number, &s->counts);
		stats_session(s->engine->stats, s->number, "end", s->peer,
			      s->why);
		stats_flush(s->engine->stats);
	}
	s->role->ended(s);
	session_free(s);
}

void session_fail(struct session *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fail(s, fmt, args);
	va_end(args);
}

static void stop_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, stop_timer);

	loop_after(s->engine->loop, &s->end);
}

void session_stop(struct session *s, const char *why)
{
	unsigned int i;

	if (s->dead || s->stopping)
		return;
	delivery_flush(s);
	s->stopping = true;
	snprintf(s->why, sizeof(s->why), "%s", why);
	abort_conns(s, CONN_END_SHUTDOWN);
	if (s->dialect->farewell)
		s->dialect->farewell(s);
	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];

		pipe_pause(p, false);
		pipe_want(p, p->queue != NULL);
		if (!p->queue)
			pipe_shut(p);
	}
	if (!s->open_pipes)
		loop_after(s->engine->loop, &s->end);
	loop_timer_in(s->engine->loop, &s->stop_timer,
		      LINGER_MS * NS_PER_MS);
}

/* --- the beginning --- */

struct pipe *session_take_pipe(struct session *s, struct conduit conduit,
			       unsigned int index, unsigned int path)
{
	struct pipe *p = pipe_new(&s->shared, &pipe_ops, s, conduit);

	if (!p) {
		conduit_close(conduit);
		return NULL;
	}
	p->index = index;
	s->pipes[index] = p;
	if (index >= s->npipes)
		s->npipes = index + 1;
	s->open_pipes++;
	layered_enters(s, conduit.layer);
	s->sched.npipes = s->npipes;
	paths_add(&s->paths, path, p);
	reading_add(s, p);
	if (s->started)
		survey_pipe(s, p);
	return p;
}

int session_add_pipe(struct session *s, int fd)
{
	return session_take_pipe(s, conduit_plain(fd), s->npipes, 0) ? 0 :
								       -ENOMEM;
}

static void prepare(struct session *s, struct engine *engine)
{
	s->engine = engine;
	s->shared.loop = engine->loop;
	s->shared.settings = engine->settings;
	s->shared.scratch = engine->scratch;
	s->shared.scratch_size = ENGINE_SCRATCH;
	s->number = ++engine->sessions;
	s->out.timer.fire = outbound_timer;
	s->stop_timer.fire = stop_timer;
	loop_task_init(&s->out.pump, outbound_pump);
	loop_task_init(&s->end, end);
	loop_task_init(&s->bury, bury);
	list_init(&s->lost_pipes);
	list_add_tail(&engine->all, &s->all);
	list_init(&s->conns);
	hoard_init(&s->hoard, &engine->hoard, 0);
	s->hoard.shed = pausing_shed;
	session_takes_time_of(s, NULL);
	conn_owner_init(&s->conn_owner, engine->loop, &engine->room, &conn_ops,
			s->dialect->speech, s);
	s->conn_owner.records = engine->stats != NULL;
	inbound_start(s);
}

struct session *session_new(struct engine *engine,
			    const struct dialect *dialect,
			    const struct session_role *role, void *owner,
			    const char *peer)
{
	const struct settings *settings = engine->settings;
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->dialect = dialect;
	prepare(s, engine);
	s->role = role;
	s->owner = owner;
	snprintf(s->peer, sizeof(s->peer), "%s", peer);
	sched_init(&s->sched, settings->conn_policy, settings->pipe_policy, 0,
		   settings->seed);
	sched_set_paths(&s->sched, settings->path_policy, settings->path_number,
			settings->path_share);
	if (!dialect->init(s))
		return s;
	session_free(s);
	return NULL;
}

void session_start(struct session *s)
{
	stats_session(s->engine->stats, s->number, "begin", s->peer, NULL);
	standby_start(s);
	survey_start(s);
	s->started = true;
}

void session_counts_in(struct session *s, struct hoard *h)
{
	hoard_move(&s->hoard, h);
}

void session_takes_time_of(struct session *s, struct budget *b)
{
	budget_fini(&s->own);
	if (!b)
		budget_init(&s->own, &s->engine->budgets);
	s->budget = b ? b : &s->own;
}

void *session_owner(const struct session *s)
{
	return s->owner;
}

const char *session_peer(const struct session *s)
{
	return s->peer;
}

const char *session_why(const struct session *s)
{
	return s->why;
}

unsigned int session_number(const struct session *s)
{
	return s->number;
}

unsigned int session_pipes(const struct session *s)
{
	return s->paths.npipes;
}

unsigned int session_connections(const struct session *s)
{
	return s->nconns;
}

struct engine *session_engine(const struct session *s)
{
	return s->engine;
}
