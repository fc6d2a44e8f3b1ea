/* SPDX-License-Identifier: MIT */
/*
 * The way out: as long as there is something to send, ask what goes next,
 * frame it and write it. It runs after each batch of events, so that all that
 * became known decides.
 */
#include "../conn/conn.h"
#include "../sched/next.h"
#include "../sched/thin.h"
#include "session_inside.h"

/* After so much the loop gets its turn: there may be something to read. */
enum { PUMP_MAX = 1 << 20 };

/* What could not be framed (no memory) is tried again after this. */
#define RETRY NS_PER_MS

void outbound_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, out.timer);

	loop_after(s->engine->loop, &s->out.pump);
}

void outbound_acked(struct session *s, struct pipe *p,
		    const struct ack_asked *what, int64_t at)
{
	paths_acked(&s->paths, p, what, at, loop_clock(), s->sched.ready > 0);
	if (s->out.wait == WAIT_FOR_LIMIT)
		loop_after(s->engine->loop, &s->out.pump);
}

/* What is small does not wait for what is not. */
static void put_on_pipe(struct session *s, struct pipe *p, struct run *run)
{
	size_t before;

	if (run->len > WIRE_MESSAGE_MAX)
		gathering_flush(&s->shared.gathering);
	if (paths_send(&s->paths, p, run->len, loop_now(s->engine->loop),
		       &before))
		pipe_ask(p, before, run->len);
	if (s->dialect->keep)
		run = s->dialect->keep(s, p, run);
	pipe_send(p, run);
}

/* A large one only for who is likely to fill it. */
static struct run *run_for(struct session *s, const struct next *next)
{
	return next->bytes > RUN_SIZE && next->conn->bulky ?
		run_get_large(&s->shared.pool) : run_get(&s->shared.pool);
}

/* One run of new bytes. Returns how many, or -1 when that cannot be. */
static int64_t send_new(struct session *s, const struct next *next)
{
	struct run *run = run_for(s, next);
	struct conn *c = next->conn;
	uint64_t before = c->tx_bytes;
	size_t len;

	if (!run)
		return -1;
	if (s->dialect->frame)
		s->dialect->frame(s, next, run);
	else
		conn_frame(c, run, next->bytes, next->payload);
	len = run->len;
	run->ahead = next->ahead;
	run->paths = c->paths;
	run->on_all = c->on_all;
	run->of_conn = true;
	sched_sent(&s->sched, c, next->pipe, len, c->tx_bytes - before);
	if (!len) {
		run_put(&s->shared.pool, run);
		return c->ready ? -1 : 0;	/* never spin on one */
	}
	thin_sent(&s->paths, c, next->pipe, len);
	put_on_pipe(s, next->pipe, run);
	return (int64_t)len;
}

static int64_t send_run(struct session *s, const struct next *next)
{
	struct run *run = next->again;
	int64_t len;

	if (next->act == NEXT_SEND)
		return send_new(s, next);
	if (next->act == NEXT_AGAIN) {
		s->dialect->sends_again(s, run);
		if (s->sched.conns->sent_again)
			s->sched.conns->sent_again(&s->sched, run->len);
	} else if (next->act == NEXT_DATAGRAMS) {
		run = s->dialect->datagrams(s, next->pipe, next->bytes);
		next->pipe->path->passing.datagram_at = loop_now(s->engine->loop);
	} else if (next->act == NEXT_TWIN) {
		run = s->dialect->copies_twin(s, next->pipe);
	} else if (next->act == NEXT_REPEAT) {
		run = s->dialect->repeats(s);
	} else {
		run = s->dialect->copies_tail(s);
	}
	if (!run)
		return -1;
	len = (int64_t)run->len;
	if (next->act == NEXT_TAIL)
		next->pipe->tx_copies += run->messages - run->uncounted;
	if (next->act == NEXT_TWIN || next->act == NEXT_REPEAT)
		next->pipe->path->reinjected += run->len;
	put_on_pipe(s, next->pipe, run);
	return len;
}

/* What was written may have left already: look before it is passed over. */
static void look_if_full(struct session *s, struct pipe *p)
{
	if (pipe_room(p))
		return;
	pipe_flush(p);
	pipe_look(p, loop_now(s->engine->loop));
}

/* The first that takes something; it is one message, so any will do. */
static struct pipe *any_pipe(struct session *s)
{
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		look_if_full(s, s->paths.pipes[i]);
		if (pipe_room(s->paths.pipes[i]))
			return s->paths.pipes[i];
	}
	return NULL;
}

/*
 * A FIN 0x99 of a connection that has ended already. It is not worth waiting
 * for: where no pipe takes it now it is not sent.
 */
void outbound_say_reset(struct session *s, struct conn *c)
{
	struct pipe *p = any_pipe(s);
	struct run *run = p ? run_get(&s->shared.pool) : NULL;
	size_t before;

	if (!run)
		return;
	run->id = c->id;
	run->first = c->tx_number;
	run->messages = 1;
	run->len = wire_put_fin(run->buf, c->id, c->tx_number++,
				WIRE_REASON_RST);
	if (paths_send(&s->paths, p, run->len, loop_now(s->engine->loop),
		       &before))
		pipe_ask(p, before, run->len);
	pipe_send(p, run);
}

/*
 * One on standby takes what is said of the session itself, once nothing waits for its socket.
 * Such a one that is asked by PING, and does not answer, would be given up by the other end.
 */
static void want_blocked_pipes(struct session *s, const struct next *next)
{
	bool wanted = s->out.wait == WAIT_FOR_PIPES || next->pipes ||
		      s->out.control_waits;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];

		pipe_want(p, p->standby ? s->out.control_waits && p->queue :
					  wanted && !pipe_room(p));
	}
}

/* Nothing more can be sent now. */
static void stand_still(struct session *s, const struct next *next)
{
	s->out.wait = next->wait;
	if (next->until == NEXT_NEVER)
		loop_timer_stop(s->engine->loop, &s->out.timer);
	else
		loop_timer_at(s->engine->loop, &s->out.timer, next->until);
	want_blocked_pipes(s, next);
}

static void look(struct session *s, struct view *view)
{
	if (s->dialect->look_kept)
		s->dialect->look_kept(s, view);
}

/*
 * For a pipe. Of one that was full only a look tells that it is so no more: did nobody
 * look, what waits would wait for ever, and the pipe call itself writable as long.
 */
static bool has_something(const struct session *s, const struct view *view)
{
	return s->sched.ready || s->out.datagrams || s->out.control_waits ||
	       next_has_again(view) || view->tail || view->twins ||
	       view->repeat;
}

/* As much as goes now. @next: what came last. Returns whether something could not be framed. */
static bool send_all(struct session *s, struct view *view, struct next *next)
{
	int64_t sent = 0, len;

	do {
		look(s, view);
		*next = sched_next(view);
		if (next->act == NEXT_WAIT)
			return false;
		len = send_run(s, next);
		if (len < 0)
			return true;
		sent += len;
		look_if_full(s, next->pipe);
		budget_used(s->budget);
	} while (sent < PUMP_MAX && budget_goes_on(s->budget));
	return false;
}

static void pump(struct session *s)
{
	struct view view = {
		.sched = &s->sched, .paths = &s->paths,
		.now = loop_now(s->engine->loop),
		.scatters = s->engine->settings->thin == THIN_OFF,
	};
	struct next next;
	bool failed;

	look(s, &view);
	if (has_something(s, &view))
		paths_look(&s->paths, loop_clock());
	gathering_begin(&s->shared.gathering);
	if (s->dialect->control)
		s->out.control_waits = !s->dialect->control(s);
	failed = send_all(s, &view, &next);
	gathering_end(&s->shared.gathering);
	if (failed)
		loop_timer_in(s->engine->loop, &s->out.timer, RETRY);
	else if (next.act == NEXT_WAIT)
		stand_still(s, &next);
	else
		loop_after(s->engine->loop, &s->out.pump);
}

void outbound_pump(struct task *t)
{
	struct session *s = container_of(t, struct session, out.pump);

	if (s->dead || s->stopping)
		return;
	if (budget_begin(s->budget)) {
		pump(s);
		budget_end(s->budget);
	} else {
		loop_after(s->engine->loop, &s->out.pump);
	}
}
