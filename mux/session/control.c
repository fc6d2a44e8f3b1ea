/* SPDX-License-Identifier: MIT */
/*
 * What an end says of the session itself: ACK, WINDOW, HINT, PING and PONG, LISTEN and LISTENING, PATH. All of it is
 * made from state at the moment when a pipe takes it, ahead of connections' bytes and
 * of what bounds them: a pipe takes it if nothing waits for its socket.
 */
#include <string.h>

#include "../conn/conn.h"
#include "extended.h"

/* An ACK is due so long after counted messages came, or after so many bytes. */
#define ACK_DELAY (100 * NS_PER_MS)
enum { ACK_BYTES = 1 << 20 };
/*
 * Who has lost a pipe may soon lose another one, and what came on that and was not
 * acknowledged goes twice.
 */
#define ACK_DELAY_DYING (25 * NS_PER_MS)
#define DYING (2 * NS_PER_SEC)

/* A pipe on which nothing came for so long is asked, and closed without answer. */
#define PING_AFTER (15 * NS_PER_SEC)
#define PING_PATIENCE (5 * NS_PER_SEC)
#define PING_LOOK NS_PER_SEC

/* A pipe that was heard of within this time is in use, */
#define LATELY (500 * NS_PER_MS)
/* and what matters goes on one where something came within two ACKs' time and a half. */
#define JUST_NOW (250 * NS_PER_MS)

/* --- writing --- */

static bool takes_control(const struct pipe *p)
{
	return p->watch.fd >= 0 && !pipe_is_blocked(p);
}

/* Paths on which something came that no ACK told of yet: bits. They live. */
static unsigned int paths_that_bring(const struct session *s)
{
	unsigned int bits = 0, i;

	for (i = 0; i < s->paths.npipes; i++) {
		const struct pipe *p = s->paths.pipes[i];
		const struct leg *leg = &s->ext->leg[p->index];

		if (leg->tally.received != leg->told)
			bits |= 1U << p->path->number;
	}
	return bits;
}

/*
 * An ACK on a dead pipe is lost: rather one that was heard of lately, even if it is a backup's
 * and its turn has not come here. Perhaps it has at the other end. And rather on a path that
 * brought what the ACK tells of, or of which something was heard within a round trip. Another one
 * may have become silent: there this ACK and the next would be lost, and who sent would take the
 * pipes for dead that live.
 */
static unsigned int life_of(const struct pipe *p, unsigned int bring,
			    int64_t now)
{
	int64_t since = now - p->heard_at;

	if (since >= JUST_NOW)
		return 0;
	if (p->standby)
		return 1;
	return bring >> p->path->number & 1 ||
	       since < p->info.rttmin_ms * NS_PER_MS ? 3 : 2;
}

static bool is_better(const struct pipe *a, const struct pipe *b,
		      unsigned int bring, int64_t now)
{
	unsigned int of_a = life_of(a, bring, now);
	unsigned int of_b = life_of(b, bring, now);

	if (of_a != of_b)
		return of_a > of_b;
	if (paths_is_nearer(a, b) || paths_is_nearer(b, a))
		return paths_is_nearer(a, b);
	return pipe_held(a) < pipe_held(b);
}

/* On the nearest path that lives, the pipe with the least in front of what it is given now. */
static struct pipe *best_pipe(const struct session *s)
{
	int64_t now = loop_now(s->engine->loop);
	unsigned int bring = paths_that_bring(s), i;
	struct pipe *best = NULL;

	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];

		if (takes_control(p) && (!best || is_better(p, best, bring, now)))
			best = p;
	}
	return best;
}

static void add(struct run *run, const struct wire_ext *what)
{
	struct wire_msg msg;
	size_t len = wire_ext_put(run->buf + run->len, what);

	wire_read(run->buf + run->len, len, &msg);
	run->len += len;
	run->messages++;
	run->uncounted += !wire_ext_counts(&msg);
}

/* It is in order with nothing. */
static void send_run(struct session *s, struct pipe *p, struct run *run)
{
	run->heard = true;
	run = keeping_add(s, p, run);
	pipe_send(p, run);
}

bool control_say(struct session *s, struct pipe *p, const struct wire_ext *what)
{
	struct run *run = run_get(&s->shared.pool);

	if (!run)
		return false;
	add(run, what);
	send_run(s, p, run);
	return true;
}

/* --- what there is to say --- */

/*
 * The first message of @run, which @p takes. Who leaves a path for another one may do so because
 * it is dead: what was said there may not have arrived.
 */
static void add_ack(struct session *s, struct pipe *p, struct run *run)
{
	struct extended *x = s->ext;
	struct wire_ext what = { .type = WIRE_ACK };
	unsigned int i;

	x->ack_all |= paths_number(&s->paths, p) != x->ack_path;
	x->ack_path = paths_number(&s->paths, p);
	what.ack.time_us = (uint64_t)(loop_now(s->engine->loop) / NS_PER_US);
	what.ack.reorder_bytes = (uint32_t)s->in.early;
	for (i = 0; i < s->npipes; i++) {
		struct leg *leg = &x->leg[i];

		if (!s->pipes[i] ||
		    (leg->tally.received == leg->told && !x->ack_all))
			continue;
		leg->told = leg->tally.received;
		what.ack.pipe[what.ack.pipes++] = (struct wire_ack_pipe){
			.pipe = (uint8_t)i,
			.incarnation = leg->incarnation,
			.received = leg->tally.received,
		};
	}
	x->ack_due = x->ack_all = false;
	x->unacked = 0;
	loop_timer_stop(s->engine->loop, &x->ack_timer);
	if (!what.ack.pipes)
		return;
	add(run, &what);
	p->tx_acks++;
	p->tx_ack_bytes += run->len;
}

static bool has_space(const struct run *run)
{
	return run->size - run->len >= WIRE_MESSAGE_MAX;
}

static void add_windows(struct session *s, struct run *run)
{
	struct extended *x = s->ext;

	while (!list_empty(&x->windows_due) && has_space(run)) {
		struct channel *ch = list_first(&x->windows_due, struct channel,
						line);
		struct wire_ext what = {
			.type = WIRE_WINDOW,
			.window = { .id = ch->id, .offset = ch->in.granted },
		};

		list_del(&ch->line);
		add(run, &what);
	}
}

static void add_hints(struct session *s, struct run *run)
{
	struct wire_ext what;

	while (has_space(run) && hints_next(s->ext, &what))
		add(run, &what);
}

static void add_listeners(struct session *s, struct run *run)
{
	struct wire_ext what;

	while (has_space(run) && reverse_next(s->ext, &what))
		add(run, &what);
}

static void add_paths(struct session *s, const struct pipe *p, struct run *run)
{
	struct wire_ext what;

	while (has_space(run) && ways_next(s->ext, p, &what))
		add(run, &what);
}

static void add_mtus(struct session *s, struct run *run)
{
	struct wire_ext what;

	while (has_space(run) && flows_next_mtu(s->ext, &what))
		add(run, &what);
}

/* These are kept, and wait where nothing more may be kept. */
static bool kept_waits(const struct session *s)
{
	return (!list_empty(&s->ext->windows_due) || s->ext->reverse.due ||
		!list_empty(&s->ext->hints_due) || ways_are_due(s->ext)) &&
	       !keeping_is_full(s->ext);
}

static void say_ping(struct session *s, struct pipe *p, struct leg *leg)
{
	int64_t now = loop_now(s->engine->loop);
	struct wire_ext what = {
		.type = WIRE_PING,
		.ping = { .token = ++leg->token,
			  .sent_us = (uint64_t)(now / NS_PER_US) },
	};

	leg->ping_due = false;
	if (!leg->pinged)
		leg->pinged_at = now;
	leg->pinged = true;
	control_say(s, p, &what);
}

static void say_pong(struct session *s, struct pipe *p, struct leg *leg)
{
	struct wire_ext what = { .type = WIRE_PONG, .ping = leg->pong };

	leg->pong_due = false;
	what.ping.received_us =
		(uint64_t)(loop_now(s->engine->loop) / NS_PER_US);
	control_say(s, p, &what);
}

/* PING and PONG are about the pipe that they go on. */
static bool send_pings(struct session *s)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];
		struct leg *leg = &s->ext->leg[p->index];

		if (leg->pong_due && takes_control(p))
			say_pong(s, p, leg);
		if (leg->ping_due && takes_control(p))
			say_ping(s, p, leg);
		all &= !leg->pong_due && !leg->ping_due;
	}
	return all;
}

bool control_send(struct session *s)
{
	struct extended *x = s->ext;
	bool all = send_pings(s);

	while (x->ack_due || !list_empty(&x->narrow) || kept_waits(s)) {
		struct pipe *p = best_pipe(s);
		struct run *run = p ? run_get(&s->shared.pool) : NULL;

		if (!run)
			return false;
		if (x->ack_due)
			add_ack(s, p, run);
		add_mtus(s, run);
		if (kept_waits(s)) {
			add_windows(s, run);
			add_hints(s, run);
			add_listeners(s, run);
			add_paths(s, p, run);
		}
		if (run->len)
			send_run(s, p, run);
		else
			run_put(&s->shared.pool, run);
	}
	return all;
}

/* --- when it is due --- */

static void ack_now(struct extended *x)
{
	x->ack_due = true;
	loop_after(x->s->engine->loop, &x->s->out.pump);
}

static int64_t ack_delay(const struct extended *x)
{
	int64_t now = loop_now(x->s->engine->loop);

	return x->lost_at && now - x->lost_at < DYING ? ACK_DELAY_DYING :
							ACK_DELAY;
}

void control_came(struct session *s, size_t bytes)
{
	struct extended *x = s->ext;

	x->unacked += bytes;
	if (x->ack_due)
		return;
	if (x->unacked >= ACK_BYTES)
		ack_now(x);
	else if (!x->ack_timer.slot)
		loop_timer_in(s->engine->loop, &x->ack_timer, ack_delay(x));
}

void control_ask_again(struct session *s, const struct pipe *p)
{
	s->ext->leg[p->index].ping_due = true;
	loop_after(s->engine->loop, &s->out.pump);
}

void control_ask(struct session *s, const struct pipe *p)
{
	if (!s->ext->leg[p->index].pinged)
		control_ask_again(s, p);
}

void control_ask_quiet(struct session *s)
{
	int64_t now = loop_now(s->engine->loop);
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		if (now - s->paths.pipes[i]->heard_at > LATELY)
			control_ask(s, s->paths.pipes[i]);
	}
}

static void ack_timer(struct timer *t)
{
	ack_now(container_of(t, struct extended, ack_timer));
}

/*
 * It cannot even be asked: what waits for its socket is in front. The other end's kernel may be
 * there, and its process hang.
 */
static bool takes_nothing(const struct pipe *p, const struct leg *leg,
			  int64_t now, int64_t patience)
{
	int64_t last = p->heard_at > leg->progress_at ? p->heard_at :
							leg->progress_at;

	return leg->ping_due && p->queue && now - last > PING_AFTER + patience;
}

static void look_at_pipe(struct session *s, struct pipe *p, int64_t now)
{
	struct leg *leg = &s->ext->leg[p->index];
	int64_t patience = suspects_patience(s->ext, p, PING_PATIENCE);
	int64_t quiet = now - (p->heard_at > leg->pinged_at ? p->heard_at :
							      leg->pinged_at);
	char why[64];

	if (!pipe_keeps_order(p) && leg->kept.sent > TALLY_MOST) {
		snprintf(why, sizeof(why), "pipe %u: its counts are used up",
			 p->index);
		extended_pipe_ended(s, p, false, why);
		return;
	}
	if (takes_nothing(p, leg, now, patience)) {
		snprintf(why, sizeof(why), "pipe %u: it took nothing, and nothing came, for %d s",
			 p->index, (int)((PING_AFTER + patience) / NS_PER_SEC));
		extended_pipe_ended(s, p, false, why);
	} else if (leg->pinged && quiet > patience) {
		snprintf(why, sizeof(why), "pipe %u: a PING was not answered for %d s",
			 p->index, (int)(patience / NS_PER_SEC));
		extended_pipe_ended(s, p, false, why);
	} else if (!leg->pinged && now - p->heard_at > PING_AFTER) {
		leg->ping_due = true;
		loop_after(s->engine->loop, &s->out.pump);
	}
}

static void ping_timer(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, ping_timer);
	struct session *s = x->s;
	int64_t now = loop_now(s->engine->loop);
	unsigned int i;

	/* A pipe that has ended leaves its place to the one behind it. */
	for (i = s->paths.npipes; i-- > 0 && session_is_up(s);)
		look_at_pipe(s, s->paths.pipes[i], now);
	loop_timer_in(s->engine->loop, t, PING_LOOK);
}

void control_farewell(struct session *s)
{
	struct wire_ext what = {
		.type = WIRE_GOODBYE,
		.goodbye = { .reason = s->ext->goodbye },
	};
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++)
		control_say(s, s->paths.pipes[i], &what);
}

void control_init(struct extended *x)
{
	x->ack_timer.fire = ack_timer;
	x->ping_timer.fire = ping_timer;
	loop_timer_in(x->s->engine->loop, &x->ping_timer, PING_LOOK);
}

void control_stop(struct extended *x)
{
	loop_timer_stop(x->s->engine->loop, &x->ack_timer);
	loop_timer_stop(x->s->engine->loop, &x->ping_timer);
}
