/* SPDX-License-Identifier: MIT */
/*
 * Reinjecting: what goes again on another pipe before its own is given up (extension/reinject.h).
 * Which message it is is known when a pipe takes it, as with tails; it is kept as a twin of
 * the first one, so what the other end has by one of them goes no third time. What tails have copied
 * is left out.
 *
 * A timer looks while anything is kept. What timely finds silent gets nothing new before something of it is
 * acknowledged: tails does the same with what is overdue.
 */
#include <string.h>

#include "../extension/reinject.h"
#include "../settings/path_bits.h"
#include "extended.h"
#include "sent_run.h"

/* Whoever answers is busy for so long now and then, however short the round trip. */
#define PATIENCE_LEAST (10 * NS_PER_MS)

/* Nobody tells of a pipe that timed out; and what no pipe took is tried again. */
#define LOOK (20 * NS_PER_MS)

static enum reinject_mode mode_of(const struct session *s)
{
	return s->engine->settings->reinject;
}

static int64_t ns(double ms)
{
	return (int64_t)(ms * NS_PER_MS);
}

static int64_t patience(const struct pipe *p)
{
	int64_t known = ns(p->info.patience_ms);

	return known && known < PATIENCE_LEAST ? PATIENCE_LEAST : known;
}

/* --- what --- */

/* Is there another pipe that could take it? */
static bool has_taker(const struct session *s, const struct pipe *p,
		      uint8_t paths)
{
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		const struct pipe *other = s->paths.pipes[i];

		if (other != p && !other->doubtful && !other->overdue &&
		    !other->standby &&
		    path_bits_have(paths, other->path->number))
			return true;
	}
	return false;
}

static bool went_twice(const struct sent_run *sent)
{
	return sent->run->copy || !list_empty(&sent->item.twins);
}

/* The oldest on @p that may go again; NULL: there is none. */
static struct sent_run *head_of(const struct session *s, const struct pipe *p)
{
	const struct leg *leg = &s->ext->leg[p->index];
	uint64_t at = pipe_arrived(p);
	struct kept_item *item;

	if (p->standby || leg->suspect_since)
		return NULL;
	if (leg->twice_to > at)
		at = leg->twice_to;
	for (item = leg->kept.first; item; item = item->next) {
		struct sent_run *sent = sent_run_of(item);

		if (sent->end > at && !item->there && !went_twice(sent) &&
		    has_taker(s, p, sent->run->paths))
			return sent;
	}
	return NULL;
}

static struct reinject_head tell(const struct session *s, const struct pipe *p,
				 int64_t now)
{
	const struct pipe_info *info = &p->info;
	const struct sent_run *sent = head_of(s, p);

	if (!sent)
		return (struct reinject_head){ .there = false };
	return (struct reinject_head){
		.there = true,
		.sent_at = sent->sent_at,
		.timed_out = info->timed_out,
		.tail = {
			.outstanding = pipe_outstanding(p),
			.in_flight = info->in_flight,
			.astray = info->astray,
			.segment = info->mss,
			.heard_at = now - ns(info->unheard_ms),
			.round_trip = ns(info->rtt_ms),
			.patience = patience(p),
		},
	};
}

/* The pipe of which something goes again now; NULL: none, and @look_at is as reinject_pick() says. */
static struct pipe *pick(struct session *s, int64_t *look_at)
{
	struct reinject_head head[PIPES_MAX];
	int64_t now = loop_now(s->engine->loop);
	unsigned int i;
	int best;

	for (i = 0; i < s->paths.npipes; i++)
		head[i] = tell(s, s->paths.pipes[i], now);
	best = reinject_pick(mode_of(s), s->ext->owed, head, s->paths.npipes, now,
			     look_at);
	return best < 0 ? NULL : s->paths.pipes[best];
}

static bool affords(const struct extended *x, size_t len)
{
	return reinject_affords(x->sent, x->copies + x->reinjected, len);
}

void reinjecting_look(struct session *s, struct view *view)
{
	struct extended *x = s->ext;
	const struct sent_run *sent = NULL;
	struct pipe *p = NULL;
	int64_t look_at;

	view->repeat = false;
	if (!x->reinjects)
		return;
	p = pick(s, &look_at);
	if (p)
		sent = head_of(s, p);
	x->reinjects = sent && affords(x, sent->run->len);
	if (!x->reinjects)
		return;
	view->repeat = true;
	view->repeat_of = p;
	view->repeat_paths = sent->run->paths;
	view->repeat_ahead = mode_of(s) == REINJECT_MPFLEX;
}

struct run *reinjecting_copy(struct session *s)
{
	struct extended *x = s->ext;
	int64_t look_at;
	struct sent_run *sent = head_of(s, pick(s, &look_at));
	struct run *run = duplicate_run(sent->run);
	struct leg *leg;

	if (!run)
		return NULL;
	x->twin_of = sent;
	leg = &x->leg[sent->pipe];
	if (leg->copied < sent->end)	/* all before it was acknowledged, or went twice */
		leg->copied = sent->end;
	x->owed = false;
	x->reinjected += run->len;
	s->counts.reinjected += run->messages - run->uncounted;
	s->counts.reinjected_bytes += run->len;
	return run;
}

/* --- when --- */

static void doubt(struct extended *x, struct pipe *p)
{
	p->doubtful = x->doubts = true;
	x->leg[p->index].doubted_at = pipe_arrived(p);
}

static bool is_anything_kept(const struct session *s)
{
	unsigned int i = 0;

	while (i < s->paths.npipes &&
	       !s->ext->leg[s->paths.pipes[i]->index].kept.first)
		i++;
	return i < s->paths.npipes;
}

static void look(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, reinjects_timer);
	struct session *s = x->s;
	int64_t now = loop_now(s->engine->loop), look_at;
	struct pipe *p;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++)
		pipe_look_closely(s->paths.pipes[i], now);
	p = pick(s, &look_at);
	if (p) {
		x->reinjects = true;
		if (mode_of(s) == REINJECT_TIMELY)
			doubt(x, p);
		loop_after(s->engine->loop, &s->out.pump);
	}
	/* Before its time nothing is overdue; of all else nobody tells. */
	if (p || look_at == TAIL_NEVER)
		look_at = now + LOOK;
	if (is_anything_kept(s))
		loop_timer_at(s->engine->loop, t, look_at);
}

void reinjecting_written(struct session *s, const struct pipe *p)
{
	int64_t wait = LOOK;

	if (mode_of(s) == REINJECT_OFF || s->paths.npipes < 2)
		return;
	if (mode_of(s) == REINJECT_TIMELY)
		wait = tail_patience(ns(p->info.rtt_ms), patience(p));
	loop_timer_by(s->engine->loop, &s->ext->reinjects_timer,
		      loop_now(s->engine->loop) + wait);
}

void reinjecting_acked(struct session *s, const struct wire_ack *ack)
{
	struct extended *x = s->ext;
	uint64_t limit = x->lp ? x->welcome.reorder_limit : x->hello.reorder_limit;

	if (mode_of(s) != REINJECT_MPFLEX)
		return;
	x->owed = reinject_is_asked(ack->reorder_bytes, limit);
	if (!x->owed)
		return;
	x->reinjects = true;
	loop_after(s->engine->loop, &s->out.pump);
}

void reinjecting_enter(struct leg *leg)
{
	leg->twice_to = 0;
}

void reinjecting_init(struct extended *x)
{
	x->reinjects_timer.fire = look;
}

void reinjecting_stop(struct extended *x)
{
	loop_timer_stop(x->s->engine->loop, &x->reinjects_timer);
}
