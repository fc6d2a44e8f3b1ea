/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../base/log.h"
#include "../conn/conn.h"
#include "orphan.h"
#include "session_inside.h"

enum { SCRATCH = 256 * 1024 };

/* Ids come free one by one; those that ask for room are told in handfuls. */
#define REST_LOOK (100 * NS_PER_MS)

static void relieve(struct task *t)
{
	hoard_relieve(&container_of(t, struct engine, relief)->hoard);
}

int engine_init(struct engine *engine, const struct settings *settings,
		struct log *log)
{
	memset(engine, 0, sizeof(*engine));
	engine->settings = settings;
	engine->log = log;
	list_init(&engine->orphans);
	hoard_init(&engine->hoard, NULL, settings->max_held);
	loop_task_init(&engine->relief, relieve);
	engine->loop = loop_new();
	engine->scratch = malloc(SCRATCH);
	if (engine->loop && engine->scratch)
		return 0;
	engine_fini(engine);
	return -1;
}

void engine_fini(struct engine *engine)
{
	orphans_free(engine);
	loop_free(engine->loop);
	free(engine->scratch);
	engine->loop = NULL;
	engine->scratch = NULL;
}

/* --- connections --- */

static void conn_is_ready(struct conn *c)
{
	struct session *s = c->owner;

	sched_ready(&s->sched, c, loop_now(s->engine->loop));
	loop_after(s->engine->loop, &s->out.pump);
}

static void conn_is_idle(struct conn *c)
{
	struct session *s = c->owner;

	sched_idle(&s->sched, c, loop_now(s->engine->loop));
}

static void conn_has_queued(struct conn *c, size_t bytes)
{
	inbound_queued(c->owner, c, bytes);
}

static void conn_has_released(struct conn *c, size_t queued, size_t early)
{
	inbound_released(c->owner, c, queued, early);
}

static void conn_has_moved(struct conn *c, enum conn_state from)
{
	struct session *s = c->owner;

	if (s->role->moved)
		s->role->moved(s, c, (int)from);
}

static void tell_room(struct session *s)
{
	if (s->role->room && !s->dead && !s->stopping)
		s->role->room(s);
}

void session_mind_rest(struct session *s)
{
	int64_t expiry = table_expiry(s->table);
	int64_t rest;

	if (!expiry || s->rest_timer.slot)
		return;
	rest = expiry - inbound_reading_time(s);
	loop_timer_in(s->engine->loop, &s->rest_timer,
		      rest > REST_LOOK ? rest : REST_LOOK);
}

/*
 * Who did not open a connection needs to remember its id only while something
 * of it may be under way. Who did rests every id: the other end cannot know
 * that much.
 */
static void conn_is_over(struct conn *c)
{
	struct session *s = c->owner;
	bool complete = !c->ours && c->complete;

	sched_forget(&s->sched, c, loop_now(s->engine->loop));
	table_remove(s->table, c, complete, inbound_reading_time(s));
	inbound_over(s, c);
	stats_conn(s->engine->stats, s->number, c, loop_clock());
	session_mind_rest(s);
	tell_room(s);
}

/*
 * A server answered behind LP's end. RP says that this was lost as if the server
 * had reset the connection before: LP may still be able to tell its application.
 */
static void conn_has_lost(struct conn *c)
{
	struct session *s = c->owner;

	if (s->role->syn && !s->dead && !s->stopping &&
	    table_is_free(s->table, c->id))
		outbound_say_reset(s, c);
}

static void conn_is_gone(struct conn *c)
{
	struct session *s = c->owner;

	table_gone(s->table, c);
	conn_free(c);
	s->nconns--;
	tell_room(s);
}

static const struct conn_ops conn_ops = {
	.ready = conn_is_ready,
	.idle = conn_is_idle,
	.queued = conn_has_queued,
	.released = conn_has_released,
	.moved = conn_has_moved,
	.lost = conn_has_lost,
	.over = conn_is_over,
	.gone = conn_is_gone,
};

struct conn *session_conn_new(struct session *s, uint16_t id)
{
	struct conn *c = conn_new(s->engine->loop, &conn_ops, s, id);

	if (!c)
		return NULL;
	table_add(s->table, c);
	list_add_tail(&s->conns, &c->member);
	s->nconns++;
	return c;
}

bool session_is_up(const struct session *s)
{
	return !s->dead && !s->stopping;
}

bool session_has_room(const struct session *s)
{
	return session_is_up(s) &&
	       s->nconns < s->engine->settings->max_conns &&
	       table_has_id(s->table);
}

int64_t session_next_id_in(const struct session *s)
{
	int64_t expiry = table_expiry(s->table);

	if (table_has_id(s->table) || !expiry)
		return 0;
	return expiry - inbound_reading_time(s);
}

int session_open(struct session *s, int fd, const uint8_t addr[4],
		 uint16_t port)
{
	struct conn *c;
	uint16_t id;

	if (!session_has_room(s))
		return -EAGAIN;
	id = table_next_id(s->table, inbound_reading_time(s));
	c = id ? session_conn_new(s, id) : NULL;
	if (!c)
		return -EAGAIN;
	memcpy(c->dst, addr, sizeof(c->dst));
	c->dst_port = port;
	c->ours = c->had_syn = true;
	c->syn_pending = true;
	if (conn_attach(c, fd) < 0)
		conn_abort(c, CONN_END_LIMIT);
	return 0;
}

static void rest_over(struct timer *t)
{
	struct session *s = container_of(t, struct session, rest_timer);
	struct conn *c;

	while ((c = table_expire(s->table, inbound_reading_time(s))))
		conn_abort(c, CONN_END_PROTOCOL);
	session_mind_rest(s);
	tell_room(s);
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
	inbound_flush(s);
	s->dead = true;
	vsnprintf(s->why, sizeof(s->why), fmt, args);
	loop_after(s->engine->loop, &s->end);
}

static bool pipe_message(struct pipe *p, const struct wire_msg *msg,
			 uint64_t offset)
{
	return inbound_message(p->owner, p, msg, offset);
}

static void pipe_readable(struct pipe *p)
{
	reading_ready(p->owner, p);
}

/*
 * A pipe is over. Where the session is ending anyway nothing is lost by that;
 * else it is the end of it, since nobody can tell which of the pipe's messages
 * have arrived.
 */
__attribute__((format(printf, 2, 3)))
static void lose_pipe(struct session *s, const char *fmt, ...)
{
	va_list args;

	s->open_pipes--;
	if (s->stopping) {
		if (!s->open_pipes)
			loop_after(s->engine->loop, &s->end);
		return;
	}
	va_start(args, fmt);
	fail(s, fmt, args);
	va_end(args);
}

static void pipe_broken(struct pipe *p, const char *what, const char *detail)
{
	struct session *s = p->owner;

	if (!s->stopping)
		log_warn(s->engine->log, "session %u: pipe %u, %s: session ended",
			 s->number, p->index, detail);
	lose_pipe(s, "pipe %u brought %s", p->index, what);
}

static void pipe_ended(struct pipe *p, int err)
{
	struct session *s = p->owner;

	if (err)
		lose_pipe(s, "pipe %u failed: %s", p->index, strerror(-err));
	else
		lose_pipe(s, "pipe %u was closed by the other end", p->index);
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

static const struct pipe_ops pipe_ops = {
	.acked = pipe_acked,
	.message = pipe_message,
	.readable = pipe_readable,
	.broken = pipe_broken,
	.ended = pipe_ended,
	.writable = pipe_writable,
};

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

		if (!c->over || c->state == CONN_HEEDING)
			conn_abort(c, why);
	}
}

static void stop_timers(struct session *s)
{
	struct loop *loop = s->engine->loop;

	loop_timer_stop(loop, &s->out.timer);
	loop_timer_stop(loop, &s->rest_timer);
	inbound_stop(s);
	survey_stop(s);
	loop_timer_stop(loop, &s->stop_timer);
	loop_task_stop(&s->out.pump);
	loop_task_stop(&s->end);
}

void session_free(struct session *s)
{
	unsigned int i;

	while (!list_empty(&s->conns))
		orphan(s->engine, list_first(&s->conns, struct conn, member));
	stop_timers(s);
	for (i = 0; i < s->npipes; i++)
		pipe_free(s->pipes[i]);
	hoard_fini(&s->hoard);
	run_pool_fini(&s->shared.pool);
	table_free(s->table);
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
	s->stopping = true;
	snprintf(s->why, sizeof(s->why), "%s", why);
	abort_conns(s, CONN_END_SHUTDOWN);
	for (i = 0; i < s->npipes; i++) {
		pipe_pause(s->pipes[i], false);
		pipe_want(s->pipes[i], s->pipes[i]->queue != NULL);
		if (!s->pipes[i]->queue)
			pipe_shut(s->pipes[i]);
	}
	loop_timer_in(s->engine->loop, &s->stop_timer,
		      LINGER_MS * NS_PER_MS);
}

/* --- the beginning --- */

int session_add_pipe(struct session *s, int fd)
{
	struct pipe *p = pipe_new(&s->shared, &pipe_ops, s, fd);

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->index = s->npipes;
	s->pipes[s->npipes++] = p;
	s->open_pipes++;
	s->sched.npipes = s->npipes;
	path_add(&s->path, p);
	reading_add(s, p);
	return 0;
}

/*
 * A session does not begin with the ids of another one: where messages of two
 * local proxies are mixed up they name ids that were never opened.
 */
static uint16_t first_id(const struct settings *settings)
{
	uint64_t where = settings->seed;

	if (!settings->seed_given &&
	    getrandom(&where, sizeof(where), GRND_NONBLOCK) < 0)
		where = (uint64_t)loop_clock();
	return (uint16_t)(1 + where % WIRE_ID_LP_MAX);
}

static void prepare(struct session *s, struct engine *engine)
{
	s->engine = engine;
	s->shared.loop = engine->loop;
	s->shared.settings = engine->settings;
	s->shared.scratch = engine->scratch;
	s->shared.scratch_size = SCRATCH;
	s->number = ++engine->sessions;
	s->out.timer.fire = outbound_timer;
	s->rest_timer.fire = rest_over;
	s->stop_timer.fire = stop_timer;
	loop_task_init(&s->out.pump, outbound_pump);
	loop_task_init(&s->end, end);
	list_init(&s->conns);
	hoard_init(&s->hoard, &engine->hoard, 0);
	s->hoard.shed = pausing_shed;
	inbound_start(s);
}

struct session *session_new(struct engine *engine,
			    const struct session_role *role, void *owner,
			    const char *peer)
{
	const struct settings *settings = engine->settings;
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->table = table_new();
	if (!s->table) {
		free(s);
		return NULL;
	}
	table_begin_at(s->table, first_id(settings));
	prepare(s, engine);
	s->role = role;
	s->owner = owner;
	snprintf(s->peer, sizeof(s->peer), "%s", peer);
	sched_init(&s->sched, settings->conn_policy, settings->pipe_policy, 0,
		   settings->seed);
	return s;
}

void session_start(struct session *s)
{
	stats_session(s->engine->stats, s->number, "begin", s->peer, NULL);
	survey_start(s);
}

void session_counts_in(struct session *s, struct hoard *h)
{
	hoard_move(&s->hoard, h);
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

unsigned int session_connections(const struct session *s)
{
	return s->nconns;
}

struct engine *session_engine(const struct session *s)
{
	return s->engine;
}
