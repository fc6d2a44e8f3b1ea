/* SPDX-License-Identifier: MIT */
/*
 * The way out: while a connection has something and a pipe can take it, pick
 * both, frame, write. It runs after each batch of events that changed either,
 * so that all that became known decides.
 */
#include "conn.h"
#include "session_inside.h"

/* After so much the loop gets its turn: there may be something to read. */
enum { PUMP_MAX = 1 << 20 };

/* So far apart may pipes be, a quarter of what the receiver holds, */
enum { SPREAD_MAX = REORDER_MAX_SESSION / 4 };

/* and so long do the others wait for the last one. */
#define HOLD_MAX (250 * NS_PER_MS)

/*
 * How much the session sent since the oldest bytes on @p were written that are not
 * acknowledged yet: so far ahead may the other pipes be.
 */
static uint64_t lag(struct session *s, struct pipe *p)
{
	size_t under_way = p->info.unsent + p->info.in_flight;

	if (p->tx_bytes - under_way >= p->mark) {
		p->mark = p->tx_bytes;
		p->mark_total = s->tx_total;
	}
	return s->tx_total - p->mark_total;
}

/*
 * A pipe that stalls for a moment (its pacing, a busy core) while the others
 * run at a gigabyte a second would fill the receiver's reorder queue to its
 * limit. So they wait for it a little, once; one that is really blocked is
 * passed over then.
 */
static bool holds_back(struct session *s)
{
	uint64_t most = 0, least = UINT64_MAX;
	unsigned int i;

	for (i = 0; i < s->npipes; i++) {
		struct pipe *p = s->pipes[i];
		uint64_t n = lag(s, p);

		if (!p->info.unsent && !p->info.in_flight)
			continue;
		most = n > most ? n : most;
		least = n < least ? n : least;
	}
	if (most <= SPREAD_MAX || most - least <= SPREAD_MAX) {
		s->held_back_at = 0;
		return false;
	}
	if (!s->held_back_at)
		s->held_back_at = loop_clock();
	return loop_clock() - s->held_back_at < HOLD_MAX;
}

void outbound_hold_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, hold_timer);

	loop_after(s->engine->loop, &s->pump);
}

/* The pipes that could send. */
static unsigned int find_able(struct session *s, struct pipe **able)
{
	int64_t now = loop_now(s->engine->loop);
	unsigned int n = 0, i;

	for (i = 0; i < s->npipes; i++) {
		pipe_look(s->pipes[i], now);
		if (pipe_room(s->pipes[i]))
			able[n++] = s->pipes[i];
	}
	return n;
}

/* In whole messages: a crumb at the end of a budget costs a segment. */
static size_t whole_budget(size_t budget, size_t room, size_t payload)
{
	size_t by_budget = (budget + payload - 1) / payload;
	size_t by_room = room / (payload + WIRE_HEADER);

	if (!by_room)
		by_room = 1;
	return (by_budget < by_room ? by_budget : by_room) * payload;
}

/* One run of @c on @p. Returns the bytes sent, or -1 when that cannot be. */
static int64_t send_run(struct session *s, struct pipe *p, struct conn *c,
			size_t budget, size_t room)
{
	struct run *run = run_get(&s->shared.pool);
	size_t payload = pipe_payload(p);
	size_t len;
	bool more;

	if (!run)
		return -1;
	more = conn_frame(c, run, whole_budget(budget, room, payload), payload);
	len = run->len;
	s->tx_total += len;
	s->sched.conns->sent(&s->sched, c, len, more);
	if (!len) {
		run_put(&s->shared.pool, run);
		return c->ready ? -1 : 0;	/* never spin on one */
	}
	pipe_send(p, run);
	return (int64_t)len;
}

/* What was just written may have left already: look before giving up. */
static bool still_able(struct session *s, struct pipe *p)
{
	if (pipe_room(p))
		return true;
	pipe_look(p, loop_now(s->engine->loop));
	return pipe_room(p) > 0;
}

static void want_blocked_pipes(struct session *s)
{
	unsigned int i;

	for (i = 0; i < s->npipes; i++)
		pipe_want(s->pipes[i],
			  s->sched.ready && !pipe_room(s->pipes[i]));
}

void outbound_pump(struct task *t)
{
	struct session *s = container_of(t, struct session, pump);
	struct pipe *able[PIPES_MAX];
	int64_t sent = 0;
	unsigned int n;

	if (s->dead || s->stopping)
		return;
	n = s->sched.ready ? find_able(s, able) : 0;
	if (n && holds_back(s)) {
		loop_timer_in(s->engine->loop, &s->hold_timer, NS_PER_MS);
		n = 0;
	}
	while (n && s->sched.ready && sent < PUMP_MAX) {
		unsigned int i = s->sched.pipes->pick(&s->sched, able, n);
		size_t room = pipe_room(able[i]);
		struct sched_choice choice = s->sched.conns->next(&s->sched,
				able[i], room, loop_now(s->engine->loop));
		int64_t len = -1;

		if (choice.act == SCHED_NEW)
			len = send_run(s, able[i], choice.conn, choice.budget,
				       room);
		if (len > 0)
			sent += len;
		if (len < 0 || !still_able(s, able[i]))
			able[i] = able[--n];
	}
	if (sent >= PUMP_MAX)
		loop_after(s->engine->loop, &s->pump);
	want_blocked_pipes(s);
}
