/* SPDX-License-Identifier: MIT */
/*
 * Tails: when the last messages of a pipe are overdue (extension/tail.h), copies of them go
 * on another pipe, ahead of what is new, where they arrive first; the other end drops
 * what comes twice. Nothing is queued for that: which messages they are is known when a
 * pipe takes them, and what was acknowledged meanwhile is none of them.
 *
 * A pipe that is overdue itself takes no copy, and until something of it is acknowledged
 * nothing else either, where there is another one: it may be dead, and what it gets now
 * would be missed once more. What the budget does not allow for is left to TCP, and
 * without --thin copy all is: then nothing is looked for here.
 */
#include "../extension/tail.h"
#include "extended.h"

/* Whoever answers is busy for so long now and then, however short the round trip. */
#define PATIENCE_LEAST (10 * NS_PER_MS)

/* A copy that no pipe took is tried again after this. */
#define AGAIN (10 * NS_PER_MS)

static int64_t ns(double ms)
{
	return (int64_t)(ms * NS_PER_MS);
}

static int64_t patience(const struct pipe *p)
{
	int64_t known = ns(p->info.patience_ms);

	return known && known < PATIENCE_LEAST ? PATIENCE_LEAST : known;
}

/* Before that nothing of @p can be overdue. */
static int64_t look_after(const struct pipe *p)
{
	return tail_patience(ns(p->info.rtt_ms), patience(p));
}

/* The place in @p's stream behind which messages are neither acknowledged nor copied. */
static uint64_t done(const struct pipe *p, const struct leg *leg)
{
	uint64_t at = pipe_arrived(p);

	return at > leg->copied ? at : leg->copied;
}

static struct tail tail_of(const struct pipe *p, const struct leg *leg,
			   int64_t now)
{
	const struct pipe_info *info = &p->info;

	return (struct tail){
		.outstanding = pipe_outstanding(p),
		.unsent = info->unsent,
		.in_flight = info->in_flight,
		.astray = info->astray,
		.segment = info->mss,
		.written_at = leg->written_at,
		.left_at_once = leg->left_at_once,
		.heard_at = now - ns(info->unheard_ms),
		.round_trip = ns(info->rtt_ms),
		.patience = patience(p),
	};
}

/* --- when --- */

static void run_timer(struct extended *x, int64_t at)
{
	if (!x->tails_timer.slot || x->tails_timer.at > at)
		loop_timer_at(x->s->engine->loop, &x->tails_timer, at);
}

void tails_written(struct session *s, struct pipe *p, const struct run *run)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[p->index];

	x->sent += run->len;
	leg->written_at = loop_now(s->engine->loop);
	leg->left_at_once = !p->queue && pipe_held(p) + run->len <=
			    (size_t)p->info.cwnd * p->info.mss;
	p->overdue = false;
	if (s->paths.npipes > 1 && s->engine->settings->thin == THIN_COPY)
		run_timer(x, leg->written_at + look_after(p));
}

/* Is @p overdue? If not, when to look again. */
static int64_t look_at(struct session *s, struct pipe *p, int64_t now)
{
	struct leg *leg = &s->ext->leg[p->index];
	int64_t at = leg->written_at + look_after(p);
	struct tail tail;

	if (p->standby || p->queue || !leg->kept.first)
		return TAIL_NEVER;
	if (at > now)
		return at;
	if (!duplicate_beyond(leg, done(p, leg)))
		return TAIL_NEVER;
	pipe_look_closely(p, now);
	tail = tail_of(p, leg, now);
	at = tail_overdue_at(&tail);
	if (at > now)
		return at;
	p->overdue = s->ext->tails_due = true;
	p->doubtful = s->ext->doubts = true;
	leg->doubted_at = pipe_arrived(p);
	return TAIL_NEVER;
}

static void look(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, tails_timer);
	struct session *s = x->s;
	int64_t now = loop_now(s->engine->loop), next = TAIL_NEVER;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		int64_t at = look_at(s, s->paths.pipes[i], now);

		if (at < next)
			next = at;
	}
	x->tails_due &= s->paths.npipes > 1;
	if (x->tails_due) {
		loop_after(s->engine->loop, &s->out.pump);
		if (next > now + AGAIN)
			next = now + AGAIN;
	}
	if (next != TAIL_NEVER)
		run_timer(x, next);
}

/* --- what --- */

/* A message of which a part was acknowledged goes again from its beginning. */
static bool affords(const struct extended *x, uint64_t from, uint64_t end)
{
	return tail_affords(x->sent, x->copies, end - from + WIRE_MESSAGE_MAX);
}

/* The paths that could take a copy: bits. */
static uint8_t takers(const struct session *s)
{
	uint8_t bits = 0;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		const struct pipe *p = s->paths.pipes[i];

		if (!p->overdue && !p->doubtful && !p->standby)
			bits |= (uint8_t)(1 << p->path->number);
	}
	return bits;
}

/* What is bound to paths that take none is left to TCP, and holds up nothing else. */
static bool has_taker(const struct session *s, const struct leg *leg,
		      uint64_t at)
{
	uint8_t paths = duplicate_paths(leg, at);

	return !paths || paths & takers(s);
}

/* The end of what is to be copied next of @p; 0: nothing. */
static uint64_t next_of(struct session *s, struct pipe *p)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[p->index];
	uint64_t end;

	if (!p->overdue || p->standby || p->queue)
		return 0;
	pipe_look(p, loop_now(s->engine->loop));
	p->overdue = pipe_outstanding(p) > 0;
	end = duplicate_beyond(leg, done(p, leg));
	if (end && !has_taker(s, leg, done(p, leg)))
		return 0;
	if (end && !affords(x, done(p, leg), end)) {
		leg->copied = p->tx_bytes;
		return 0;
	}
	return end;
}

static struct pipe *next_pipe(struct session *s)
{
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		if (next_of(s, s->paths.pipes[i]))
			return s->paths.pipes[i];
	}
	return NULL;
}

/* By what is known of the pipes now. */
static void end_doubts(struct session *s)
{
	struct extended *x = s->ext;
	unsigned int i;

	x->doubts = false;
	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];

		p->doubtful = p->doubtful &&
			      pipe_arrived(p) <= x->leg[p->index].doubted_at;
		x->doubts |= p->doubtful;
	}
}

bool tails_wait(struct session *s, uint8_t *paths)
{
	struct extended *x = s->ext;
	struct pipe *p = NULL;

	if (x->doubts)
		end_doubts(s);
	if (x->tails_due)
		p = next_pipe(s);
	x->tails_due = p != NULL;
	if (p)
		*paths = duplicate_paths(&x->leg[p->index],
					      done(p, &x->leg[p->index]));
	return x->tails_due;
}

struct run *tails_copy(struct session *s)
{
	struct extended *x = s->ext;
	struct pipe *p = next_pipe(s);
	struct leg *leg = p ? &x->leg[p->index] : NULL;
	struct run *run;

	run = p ? duplicate_missing(leg, done(p, leg), p->layer) : NULL;
	if (!run)
		return NULL;
	leg->copied = leg->twice_to = duplicate_beyond(leg, done(p, leg));
	x->copies += run->len;
	s->counts.copies += run->messages - run->uncounted;
	return run;
}

void tails_enter(struct leg *leg)
{
	leg->copied = 0;
	leg->written_at = 0;
}

void tails_init(struct extended *x)
{
	x->tails_timer.fire = look;
}

void tails_stop(struct extended *x)
{
	loop_timer_stop(x->s->engine->loop, &x->tails_timer);
}
