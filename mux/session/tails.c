/* SPDX-License-Identifier: MIT */
/*
 * Tails: when the last messages of a pipe are overdue (extension/tail.h), copies of them go
 * on another pipe, ahead of what is new, where they arrive first; the other end drops
 * what comes twice. Nothing is queued for that: which messages they are is known when a
 * pipe takes them, and what was acknowledged meanwhile is none of them.
 *
 * How long to wait for a single message hangs on how promptly the other end acknowledges
 * (extension/promptness.h), which is learnt from what is sent.
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

/* From one sample of a pipe to the next: each has the kernel asked. */
#define SAMPLES_APART (10 * NS_PER_MS)

int64_t tails_patience(const struct pipe *p)
{
	int64_t known = ns_of_ms(p->info.patience_ms);

	return known && known < PATIENCE_LEAST ? PATIENCE_LEAST : known;
}

int64_t tails_look_after(const struct pipe *p)
{
	return tail_patience(ns_of_ms(p->info.rtt_ms), tails_patience(p));
}

/* The place in @p's stream behind which messages are neither acknowledged nor copied. */
static uint64_t done(const struct pipe *p, const struct leg *leg)
{
	uint64_t at = pipe_arrived(p);

	return at > leg->copied ? at : leg->copied;
}

/* The one whose acknowledgement is awaited. */
static int64_t written_at(const struct pipe *p, const struct leg *leg)
{
	int64_t at = tail_is_thin(pipe_outstanding(p), p->info.mss) ?
		duplicate_sent_at(leg, done(p, leg)) : 0;

	return at ? at : leg->written_at;
}

static struct tail tail_of(const struct extended *x, const struct pipe *p,
			   const struct leg *leg, int64_t now)
{
	const struct pipe_info *info = &p->info;

	return (struct tail){
		.outstanding = pipe_outstanding(p),
		.unsent = info->unsent,
		.in_flight = info->in_flight,
		.astray = info->astray,
		.segment = info->mss,
		.written_at = written_at(p, leg),
		.left_at_once = leg->left_at_once,
		.heard_at = now - ns_of_ms(info->unheard_ms),
		.round_trip = ns_of_ms(info->rtt_ms),
		.patience = tails_patience(p),
		.prompt = promptness_is_known(&x->promptness),
	};
}

/* --- how promptly --- */

static void look_at_sample(struct session *s, struct pipe *p, int64_t now)
{
	struct leg *leg = &s->ext->leg[p->index];

	if (!leg->sample.end)
		return;
	pipe_look_closely(p, now);
	sample_look(&leg->sample, &s->ext->promptness, pipe_arrived(p),
		    p->info.retransmits, now);
}

/* @len bytes, which end at @end, are about to be written. */
static void watch(struct session *s, struct pipe *p, size_t len, uint64_t end)
{
	struct leg *leg = &s->ext->leg[p->index];
	int64_t now = loop_now(s->engine->loop);

	if (leg->sample.end && !leg->sample.followed)
		look_at_sample(s, p, now);
	if (leg->sample.end)
		leg->sample.followed = true;
	else if (tails_patience(p) && now - leg->sample.sent_at >= SAMPLES_APART &&
		 tail_is_thin(pipe_outstanding(p) + len, p->info.mss))
		sample_begin(&leg->sample, end, now, tails_look_after(p),
			     p->info.retransmits);
}

/* --- when --- */

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void tails_written(struct session *s, struct pipe *p, const struct run *run,
		   uint64_t end)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[p->index];

	x->sent += run->len;
	leg->written_at = loop_now(s->engine->loop);
	leg->left_at_once = !pipe_is_blocked(p) &&
			    pipe_has_window(p, run->len);
	p->overdue = false;
	if (s->paths.npipes == 1 || s->engine->settings->thin != THIN_COPY)
		return;
	watch(s, p, run->len, end);
	loop_timer_by(s->engine->loop, &x->tails_timer,
		      leg->written_at + tails_look_after(p));
}

/* Nothing of it is on its way now. */
static int64_t again_at(const struct pipe *p, int64_t now)
{
	int64_t after = tails_look_after(p);

	return now + (after > AGAIN ? after : AGAIN);
}

/* Is @p overdue? If not, when to look again. */
static int64_t look_at(struct session *s, struct pipe *p, int64_t now)
{
	struct leg *leg = &s->ext->leg[p->index];
	struct tail tail;
	int64_t at;

	if (p->standby || !leg->kept.first)
		return TAIL_NEVER;
	/* It waits for its socket, and goes without a word when that takes it. */
	if (p->queue)
		return again_at(p, now);
	at = written_at(p, leg) + tails_look_after(p);
	if (at > now)
		return at;
	if (!duplicate_beyond(leg, done(p, leg)))
		return TAIL_NEVER;
	pipe_look_closely(p, now);
	tail = tail_of(s->ext, p, leg, now);
	at = tail_overdue_at(&tail);
	if (at == TAIL_NEVER && tail.unsent)
		return again_at(p, now);
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
		struct pipe *p = s->paths.pipes[i];
		const struct sample *sample = &x->leg[p->index].sample;

		if (sample->due <= now)
			look_at_sample(s, p, now);
		next = sooner(next, sample_next(sample, now));
		next = sooner(next, look_at(s, p, now));
	}
	x->tails_due &= s->paths.npipes > 1;
	if (x->tails_due) {
		loop_after(s->engine->loop, &s->out.pump);
		next = sooner(next, now + AGAIN);
	}
	if (next != TAIL_NEVER)
		loop_timer_by(s->engine->loop, t, next);
}

/* --- what --- */

/* A message of which a part was acknowledged goes again from its beginning. */
static bool affords(const struct extended *x, uint64_t from, uint64_t end)
{
	return tail_affords(x->sent, x->copies, end - from + pipe_largest(&x->s->shared));
}

/* What is bound to paths that take none is left to TCP, and delays nothing else. */
static bool has_taker(const struct session *s, const struct leg *leg,
		      uint64_t at)
{
	uint8_t paths = duplicate_paths(leg, at);

	return !paths || paths & paths_with(&s->paths, duplicate_may_go_by);
}

/* The end of what is to be copied next of @p; 0: nothing. */
static uint64_t next_of(struct session *s, struct pipe *p)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[p->index];
	uint64_t end;

	if (!p->overdue || p->standby || pipe_is_blocked(p))
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

/* Of whom nothing is outstanding any more nothing is overdue: it may take copies of others. */
static void forget_overdue(struct session *s)
{
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];

		if (p->overdue && !pipe_outstanding(p))
			p->overdue = false;
	}
}

static struct pipe *next_pipe(struct session *s)
{
	unsigned int i;

	forget_overdue(s);
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

		if (!p->doubtful)
			continue;
		p->doubtful = pipe_arrived(p) <= x->leg[p->index].doubted_at;
		x->doubts |= p->doubtful;
		if (!p->doubtful)
			look_at_sample(s, p, loop_now(s->engine->loop));
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
	x->tail_of = p;
	if (p) {
		x->tail_from = done(p, &x->leg[p->index]);
		*paths = duplicate_paths(&x->leg[p->index], x->tail_from);
	}
	return x->tails_due;
}

/* What the decision was told of: by now the pipe may hold less, which other paths may carry. */
struct run *tails_copy(struct session *s)
{
	struct extended *x = s->ext;
	struct pipe *p = x->tail_of;
	struct leg *leg = &x->leg[p->index];
	struct run *run = duplicate_missing(leg, x->tail_from, p->layer);

	if (!run)
		return NULL;
	leg->copied = leg->twice_to = duplicate_beyond(leg, x->tail_from);
	x->copies += run->len;
	s->counts.copies += run->messages - run->uncounted;
	return run;
}

void tails_enter(struct leg *leg)
{
	leg->copied = 0;
	leg->written_at = 0;
	leg->sample = (struct sample){ 0 };
}

void tails_init(struct extended *x)
{
	x->tails_timer.fire = look;
	promptness_init(&x->promptness);
}

void tails_stop(struct extended *x)
{
	loop_timer_stop(x->s->engine->loop, &x->tails_timer);
}
