/* SPDX-License-Identifier: MIT */
/*
 * Reinjecting: what goes again on another pipe before its own is given up (extension/reinject.h).
 * Which message it is is known when a pipe takes it, as with tails; it is kept as a twin of
 * the first one, so what the other end has by one of them goes no third time. What tails have copied
 * is left out.
 *
 * A timer looks while anything is kept. What timely finds silent gets nothing new before something of it is
 * acknowledged: tails does the same with what is overdue. It is asked meanwhile, so that TCP learns at
 * once that it is silent no more.
 */
#include <string.h>

#include "../extension/reinject.h"
#include "extended.h"
#include "sent_run.h"

/*
 * A pipe that is silent is asked so often whether it is so still. What arrives behind a gap shows TCP
 * the gap, which its timer alone would find much later; and where the receiver has more than the
 * timer took for lost, TCP believes that nothing was.
 */
#define ASK (50 * NS_PER_MS)

/* Nobody tells of a pipe that timed out; and what no pipe took is tried again. */
#define LOOK (20 * NS_PER_MS)

static enum reinject_mode mode_of(const struct session *s)
{
	return s->engine->settings->reinject;
}

/* --- what --- */

/* Paths with another pipe than @p that could take a copy: bits. */
static uint8_t takers(const struct session *s, const struct pipe *p)
{
	uint8_t bits = 0;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		const struct pipe *other = s->paths.pipes[i];

		if (other != p && duplicate_may_go_by(other))
			bits |= (uint8_t)(1 << other->path->number);
	}
	return bits;
}

/* Of these the ones that may have @sent. */
static uint8_t among(uint8_t paths, const struct sent_run *sent)
{
	return sent->run->paths ? paths & sent->run->paths : paths;
}

static bool lives(const struct session *s, const struct path *path)
{
	int64_t now = loop_now(s->engine->loop);
	unsigned int i;

	for (i = 0; i < path->npipes; i++) {
		const struct pipe *p = path->pipes[i];

		if (reinject_path_lives(p->looked_at - ns_of_ms(p->info.unheard_ms),
					ns_of_ms(p->info.rtt_ms), now))
			return true;
	}
	return false;
}

/* Was it on its way on @p when that was found silent? */
static bool met_silence(const struct session *s, const struct pipe *p,
			int64_t sent_at)
{
	return sent_at <= s->ext->leg[p->index].silence.at;
}

/* The paths that a copy of @sent may take, which @p holds: bits. */
static uint8_t paths_for(const struct session *s, const struct pipe *p,
			 const struct sent_run *sent)
{
	uint8_t all = among(takers(s, p), sent);
	uint8_t others = all & (uint8_t)~(1U << p->path->number);
	bool silent = met_silence(s, p, sent->sent_at) &&
		      s->ext->leg[p->index].silence.of_path;

	return others && (silent || !lives(s, p->path)) ? others : all;
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
	uint8_t paths = 0;

	if (p->standby || leg->suspect_since)
		return NULL;
	if (leg->twice_to > at)
		at = leg->twice_to;
	for (item = leg->kept.first; item; item = item->next) {
		struct sent_run *sent = sent_run_of(item);

		if (sent->end <= at || item->there || went_twice(sent))
			continue;
		if (!paths)
			paths = takers(s, p);
		if (!paths)
			return NULL;
		if (among(paths, sent))
			return sent;
	}
	return NULL;
}

/*
 * For a message that was on its way in a silence it is waited as long as was known before. The first
 * acknowledgement afterwards is for TCP a round trip as long as the silence, so that srtt + 4 rttvar
 * may become longer than its own timer.
 */
static void know_of_before(const struct leg_silence *known, struct tail *tail)
{
	if (known->round_trip < tail->round_trip)
		tail->round_trip = known->round_trip;
	if (known->patience < tail->patience)
		tail->patience = known->patience;
}

static struct reinject_head tell(const struct session *s, const struct pipe *p,
				 int64_t now)
{
	const struct pipe_info *info = &p->info;
	const struct sent_run *sent = head_of(s, p);
	struct reinject_head head;

	if (!sent)
		return (struct reinject_head){ .there = false };
	head = (struct reinject_head){
		.there = true,
		.sent_at = sent->sent_at,
		.timed_out = info->timed_out,
		.tail = {
			.outstanding = pipe_outstanding(p),
			.in_flight = info->in_flight,
			.astray = info->astray,
			.segment = info->mss,
			.heard_at = now - ns_of_ms(info->unheard_ms),
			.round_trip = ns_of_ms(info->rtt_ms),
			.patience = tails_patience(p),
		},
	};
	if (met_silence(s, p, sent->sent_at))
		know_of_before(&s->ext->leg[p->index].silence, &head.tail);
	return head;
}

/*
 * The same of what may go again. After a silence it is not waited anew for what met that: TCP repairs it
 * by windows that begin with a segment, which takes several round trips.
 */
static struct reinject_head tell_due(const struct session *s,
				     const struct pipe *p, int64_t now)
{
	struct reinject_head head = tell(s, p, now);

	if (head.there && met_silence(s, p, head.sent_at))
		head.tail.heard_at = head.sent_at;
	return head;
}

/* The pipe of which something goes again now; NULL: none, and @look_at is as reinject_pick() says. */
static struct pipe *pick(struct session *s, int64_t *look_at)
{
	struct reinject_head head[PIPES_MAX];
	int64_t now = loop_now(s->engine->loop);
	unsigned int i;
	int best;

	for (i = 0; i < s->paths.npipes; i++)
		head[i] = tell_due(s, s->paths.pipes[i], now);
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
	view->repeat_paths = paths_for(s, p, sent);
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

/* A silence that goes on is the same one: what @p holds was sent before it. */
static void doubt(struct extended *x, struct pipe *p, int64_t now)
{
	struct leg *leg = &x->leg[p->index];
	const struct sent_run *head = head_of(x->s, p);

	p->doubtful = x->doubts = true;
	leg->doubted_at = pipe_arrived(p);
	if (head && head->sent_at > leg->silence.at)
		leg->silence = (struct leg_silence){
			.at = now, .round_trip = ns_of_ms(p->info.rtt_ms),
			.patience = tails_patience(p), .until = p->tx_bytes,
			.of_path = !lives(x->s, p->path),
		};
}

/* Each pipe of which something is overdue, whether or not a copy may go now. */
static void doubt_overdue(struct session *s, int64_t now)
{
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];
		struct reinject_head head = tell(s, p, now);
		int64_t look_at;

		if (reinject_pick(REINJECT_TIMELY, false, &head, 1, now,
				  &look_at) == 0)
			doubt(s->ext, p, now);
	}
}

/* Is any pipe silent? Those that are, are asked. */
static bool ask_silent(struct session *s, int64_t now)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		const struct pipe *p = s->paths.pipes[i];
		struct leg_silence *silence = &s->ext->leg[p->index].silence;

		if (pipe_arrived(p) >= silence->until)
			continue;
		any = true;
		if (now - silence->asked_at < ASK)
			continue;
		silence->asked_at = now;
		control_ask_again(s, p);
	}
	return any;
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
	bool silent;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++)
		pipe_look_closely(s->paths.pipes[i], now);
	p = pick(s, &look_at);
	if (p) {
		x->reinjects = true;
		loop_after(s->engine->loop, &s->out.pump);
	}
	if (mode_of(s) == REINJECT_TIMELY)
		doubt_overdue(s, now);
	silent = ask_silent(s, now);
	/* Before its time nothing is overdue; of all else nobody tells. */
	if (p || silent || look_at == TAIL_NEVER)
		look_at = now + LOOK;
	if (silent || is_anything_kept(s))
		loop_timer_at(s->engine->loop, t, look_at);
}

void reinjecting_written(struct session *s, const struct pipe *p)
{
	int64_t wait = LOOK;

	if (mode_of(s) == REINJECT_OFF || s->paths.npipes < 2)
		return;
	if (mode_of(s) == REINJECT_TIMELY)
		wait = tails_look_after(p);
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
	leg->silence = (struct leg_silence){ 0 };
}

void reinjecting_init(struct extended *x)
{
	x->reinjects_timer.fire = look;
}

void reinjecting_stop(struct extended *x)
{
	loop_timer_stop(x->s->engine->loop, &x->reinjects_timer);
}
