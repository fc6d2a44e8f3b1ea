/* SPDX-License-Identifier: MIT */
/*
 * The way out: while a connection has something and a pipe can take it, pick
 * both, frame, write. It runs after each batch of events that changed either,
 * so that all that became known decides.
 */
#include "../conn/conn.h"
#include "session_inside.h"

/* After so much the loop gets its turn: there may be something to read. */
enum { PUMP_MAX = 1 << 20 };

/* So far apart may pipes be, a quarter of what the receiver holds, */
enum { SPREAD_MAX = REORDER_MAX_SESSION / 4 };

/* and so long do the others wait for the last one; */
#define HOLD_MAX (250 * NS_PER_MS)

/* but as long as it takes where the receiver could soon hold no more. */
enum { SPREAD_END = REORDER_MAX_SESSION / 4 * 3 };

enum { MARK_STEP = REORDER_MAX_SESSION / PIPE_MARKS };

/* Before @p gets more: one mark for each so many bytes of the session. */
static void set_mark(struct session *s, struct pipe *p)
{
	unsigned int last = (p->first_mark + p->nmarks - 1) % PIPE_MARKS;

	if (p->nmarks == PIPE_MARKS ||
	    (p->nmarks && s->tx_total - p->marks[last].total < MARK_STEP))
		return;
	p->marks[(p->first_mark + p->nmarks++) % PIPE_MARKS] =
		(struct pipe_mark){ .bytes = p->tx_bytes + p->queued,
				    .total = s->tx_total };
}

static uint64_t outstanding(const struct pipe *p)
{
	return p->queued + p->info.unsent + p->info.in_flight + p->info.astray;
}

/*
 * What the receiver holds for want of the oldest bytes on @p that are not
 * acknowledged: what was given to the others since, and is not under way there
 * (@all: on all pipes).
 */
static int64_t ahead(const struct session *s, struct pipe *p, uint64_t all)
{
	uint64_t given = p->tx_bytes + p->queued;

	while (p->nmarks &&
	       p->marks[p->first_mark].bytes + outstanding(p) <= given) {
		p->passed = p->marks[p->first_mark];
		p->first_mark = (p->first_mark + 1) % PIPE_MARKS;
		p->nmarks--;
	}
	return (int64_t)(s->tx_total - p->passed.total) -
		(int64_t)(given - p->passed.bytes) -
		(int64_t)(all - outstanding(p));
}

/*
 * A pipe that stalls for a moment (its pacing, a busy core) while the others
 * run at a gigabyte a second would fill the receiver's reorder queue to its
 * limit. So they wait for it a little, once; one that is really blocked is
 * passed over then, until the receiver would have to reset what it cannot hold.
 */
static bool holds_back(struct session *s)
{
	uint64_t all = 0;
	int64_t most = 0;
	unsigned int i;

	for (i = 0; i < s->npipes; i++)
		all += outstanding(s->pipes[i]);
	for (i = 0; i < s->npipes; i++) {
		int64_t n = ahead(s, s->pipes[i], all);

		if (outstanding(s->pipes[i]) && n > most)
			most = n;
	}
	if (most <= SPREAD_MAX) {
		s->held_back_at = 0;
		return false;
	}
	if (!s->held_back_at)
		s->held_back_at = loop_clock();
	return most > SPREAD_END ||
	       loop_clock() - s->held_back_at < HOLD_MAX;
}

void outbound_hold_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, hold_timer);

	loop_after(s->engine->loop, &s->pump);
}

/* --- what the pipes hold together --- */

/* Should no acknowledgement be told of, look again after this. */
#define REFUSED_LOOK (5 * NS_PER_MS)

size_t outbound_held(const struct session *s)
{
	size_t sum = 0;
	unsigned int i;

	for (i = 0; i < s->npipes; i++)
		sum += pipe_held(s->pipes[i]);
	return sum;
}

/* DSWA goes by all windows, and by the round trips of pipes in use. */
static void look_at_windows(struct session *s)
{
	double cwnd = 0, rtt = 0, least = 0;
	unsigned int i, n = 0;

	for (i = 0; i < s->npipes; i++) {
		const struct pipe_info *info = &s->pipes[i]->info;

		cwnd += (double)info->cwnd * info->mss;
		if (!least || info->rttmin_ms < least)
			least = info->rttmin_ms;
		if (!info->in_flight)
			continue;
		rtt += info->rtt_ms;
		n++;
	}
	if (n)
		aggregate_windows(&s->aggregate, cwnd, least / 1e3,
				  rtt / n / 1e3, s->pipes[0]->info.mss);
}

/* Before the first acknowledgement, what the handshakes took. */
static void expect_round_trip(struct session *s)
{
	double least = s->pipes[0]->info.rttmin_ms;
	unsigned int i;

	for (i = 1; i < s->npipes; i++) {
		if (s->pipes[i]->info.rttmin_ms < least)
			least = s->pipes[i]->info.rttmin_ms;
	}
	aggregate_expect(&s->aggregate, (int64_t)(least * NS_PER_MS));
}

/* What may be written; when nothing, acknowledgements bring us back. */
static size_t room_for_all(struct session *s)
{
	size_t room = SIZE_MAX;

	s->refused = false;
	if (s->aggregate.fresh)
		expect_round_trip(s);
	if (s->aggregate.limit != AGGREGATE_NONE)
		room = aggregate_room(&s->aggregate, outbound_held(s),
				      loop_now(s->engine->loop));
	if (room)
		return room;
	s->refused = true;
	aggregate_refused(&s->aggregate, loop_now(s->engine->loop));
	loop_timer_in(s->engine->loop, &s->refused_timer, REFUSED_LOOK);
	return 0;
}

/*
 * What waited in its socket was written with other bytes before it than were
 * in flight when it left: what is now comes nearer.
 */
static void look_at_all(struct session *s, const struct ack_asked *what,
			struct aggregate_ack *ack)
{
	int64_t now = loop_now(s->engine->loop);
	size_t in_flight = 0;
	unsigned int i;

	for (i = 0; i < s->npipes; i++) {
		pipe_look(s->pipes[i], now);
		in_flight += s->pipes[i]->info.in_flight;
	}
	s->looked_at = loop_clock();
	if (what->schedule)
		ack->held = in_flight;
}

/* By what was last known of the pipes. */
static void count_delivered(const struct session *s, struct aggregate_ack *ack)
{
	unsigned int i;

	for (i = 0; i < s->npipes; i++) {
		const struct pipe_info *info = &s->pipes[i]->info;

		ack->delivered += s->pipes[i]->tx_bytes - info->unsent -
			info->in_flight - info->astray;
	}
	ack->counted_at = s->looked_at;
}

void outbound_refused_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, refused_timer);

	loop_after(s->engine->loop, &s->pump);
}

void outbound_acked(struct session *s, const struct ack_asked *what,
		    int64_t at, size_t mss)
{
	struct aggregate_ack ack = {
		.sent_at = what->sent_at, .left_at = what->left_at,
		.acked_at = at,
		.held = what->held, .before = what->before, .mss = mss,
		.more = s->sched.ready > 0,
	};

	if (what->schedule || s->aggregate.state != AGGREGATE_BOUND)
		look_at_all(s, what, &ack);
	count_delivered(s, &ack);
	if (what->clean)
		aggregate_acked(&s->aggregate, &ack);
	if (s->refused)
		loop_after(s->engine->loop, &s->pump);
}

static void ask(struct session *s, struct pipe *p, size_t len)
{
	size_t before = outbound_held(s);

	if (aggregate_asks(&s->aggregate, s->tx_total, before,
			   loop_now(s->engine->loop)))
		pipe_ask(p, before, len);
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
	s->looked_at = loop_clock();
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
	set_mark(s, p);
	s->tx_total += len;
	s->sched.conns->sent(&s->sched, c, len, more);
	if (!len) {
		run_put(&s->shared.pool, run);
		return c->ready ? -1 : 0;	/* never spin on one */
	}
	ask(s, p, len);
	pipe_send(p, run);
	return (int64_t)len;
}

/* What the policy wants on @p. Bytes sent, or -1 when it is nothing. */
static int64_t send_choice(struct session *s, struct pipe *p, size_t together)
{
	size_t room = pipe_room(p);
	struct sched_choice choice;

	if (room > together)
		room = together;
	choice = s->sched.conns->next(&s->sched, p, room,
				      loop_now(s->engine->loop));
	if (choice.act != SCHED_NEW)
		return -1;
	return send_run(s, p, choice.conn, choice.budget, room);
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
			  s->sched.ready && !s->refused &&
			  !s->pipes[i]->resting && !pipe_room(s->pipes[i]));
}

void outbound_pump(struct task *t)
{
	struct session *s = container_of(t, struct session, pump);
	struct pipe *able[PIPES_MAX];
	int64_t sent = 0;
	unsigned int n;

	if (s->dead || s->stopping)
		return;
	s->refused = false;
	n = s->sched.ready ? find_able(s, able) : 0;
	if (n && holds_back(s)) {
		loop_timer_in(s->engine->loop, &s->hold_timer, NS_PER_MS);
		n = 0;
	}
	if (s->aggregate.mode == AGGREGATE_DSWA)
		look_at_windows(s);
	while (n && s->sched.ready && sent < PUMP_MAX) {
		size_t together = room_for_all(s);
		unsigned int i;
		int64_t len;

		if (!together)
			break;
		i = s->sched.pipes->pick(&s->sched, able, n);
		len = send_choice(s, able[i], together);
		if (len > 0)
			sent += len;
		if (len < 0 || !still_able(s, able[i]))
			able[i] = able[--n];
	}
	if (sent >= PUMP_MAX)
		loop_after(s->engine->loop, &s->pump);
	want_blocked_pipes(s);
}
