/* SPDX-License-Identifier: MIT */
/*
 * Pipes that look dead. The kernel says so only after many seconds, if at all; but
 * each end knows what the other proxy has parsed. A pipe is suspect when the oldest
 * of what is kept for it is older than SUSPECT_LEAST and than three times what
 * acknowledgements take (lately, but a round trip at least), and another pipe made progress
 * since or is free. What is kept for it then goes again on others, and it gets nothing new.
 * Progress clears it. Without any for SUSPECT_PATIENCE it is over, and LP dials it again.
 *
 * Where no pipe made progress for STALLED_LEAST, nor for three times what acknowledgements
 * take, the network may have changed under all of them: LP dials one again as a probe, and
 * all others as soon as that one is welcomed.
 * Where another one makes progress first, the network is what it was: the probe is a
 * pipe that is lacking as any other, and says nothing of those that are there.
 */
#include "../base/log.h"
#include "extended.h"

#define LOOK (50 * NS_PER_MS)
#define SUSPECT_LEAST (400 * NS_PER_MS)
#define SUSPECT_PATIENCE (5 * NS_PER_SEC)
#define STALLED_LEAST NS_PER_SEC

/*
 * Where acknowledgements take long, longer than @least. None is sooner than a round trip of
 * @p, and that is known before one came.
 */
static int64_t patience(const struct extended *x, const struct pipe *p,
			int64_t least)
{
	int64_t trip = (int64_t)(p->info.rtt_ms * NS_PER_MS);
	int64_t takes = 3 * (x->ack_takes > trip ? x->ack_takes : trip);

	return takes > least ? takes : least;
}

/*
 * Another pipe than @leg made progress since @at, or has nothing to make any with: of
 * a single message that is lost nobody else could tell.
 */
static bool others_go_on(const struct extended *x, const struct leg *leg,
			 int64_t at)
{
	unsigned int i;

	for (i = 0; i < x->s->npipes; i++) {
		const struct leg *other = &x->leg[i];

		if (other != leg && x->s->pipes[i] && !other->suspect_since &&
		    (other->progress_at > at || !other->kept.first))
			return true;
	}
	return false;
}

static void suspect(struct session *s, struct pipe *p, int64_t now)
{
	struct leg *leg = &s->ext->leg[p->index];

	log_debug(s->engine->log, "session %u: pipe %u is suspect", s->number,
		  p->index);
	leg->suspect_since = now;
	p->relieved = true;
	survey_standby(s);
	keeping_suspect(s->ext, leg);
}

static void clear(struct session *s, struct pipe *p)
{
	s->ext->leg[p->index].suspect_since = 0;
	p->relieved = false;
	survey_standby(s);
	loop_after(s->engine->loop, &s->out.pump);
}

static void look_at(struct session *s, struct pipe *p, int64_t now)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[p->index];
	int64_t oldest = keeping_oldest(leg);
	char why[80];

	if (leg->suspect_since && leg->progress_at > leg->suspect_since)
		clear(s, p);
	if (!leg->suspect_since) {
		if (oldest && now - oldest > patience(x, p, SUSPECT_LEAST) &&
		    others_go_on(x, leg, oldest))
			suspect(s, p, now);
		return;
	}
	if (now - leg->suspect_since < SUSPECT_PATIENCE)
		return;
	snprintf(why, sizeof(why), "pipe %u: nothing was acknowledged for %.1f s",
		 p->index, (double)(now - leg->suspect_since) / NS_PER_SEC);
	extended_pipe_over(s, p, false, why);
}

/* --- none makes progress --- */

/* The pipe that waits longest, if all that wait have done so for long. */
static struct pipe *stalled(const struct session *s, int64_t now)
{
	struct pipe *longest = NULL;
	int64_t since = now;
	unsigned int i;

	for (i = 0; i < s->path.npipes; i++) {
		struct pipe *p = s->path.pipes[i];
		const struct leg *leg = &s->ext->leg[p->index];
		int64_t oldest = keeping_oldest(leg);

		if (now - leg->progress_at < patience(s->ext, p, STALLED_LEAST))
			return NULL;
		if (oldest && oldest < since) {
			longest = p;
			since = oldest;
		}
	}
	if (!longest || now - since <= patience(s->ext, longest, STALLED_LEAST))
		return NULL;
	return longest;
}

static bool any_goes_on(const struct session *s, int64_t since)
{
	unsigned int i;

	for (i = 0; i < s->path.npipes; i++) {
		if (s->ext->leg[s->path.pipes[i]->index].progress_at > since)
			return true;
	}
	return false;
}

static void probe(struct session *s, int64_t now)
{
	struct extended *x = s->ext;
	struct pipe *p;

	if (!x->lp)
		return;
	if (x->probing_since && any_goes_on(s, x->probing_since))
		x->probing_since = 0;
	p = x->probing_since ? NULL : stalled(s, now);
	if (!p)
		return;
	x->probing_since = now;
	extended_pipe_over(s, p, false, "no pipe makes progress: one is dialled again");
}

/* The new pipe holds nothing yet. */
void suspects_probed(struct session *s)
{
	struct extended *x = s->ext;
	int64_t now = loop_now(s->engine->loop), since = x->probing_since;
	unsigned int i;

	x->probing_since = 0;
	for (i = s->path.npipes; since && i-- > 0;) {
		struct pipe *p = s->path.pipes[i];
		const struct leg *leg = &x->leg[p->index];
		int64_t oldest = keeping_oldest(leg);

		if (oldest && now - oldest > STALLED_LEAST && leg->progress_at <= since)
			extended_pipe_over(s, p, false, "another one was dialled and works");
	}
}

static void look(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, suspects_timer);
	struct session *s = x->s;
	int64_t now = loop_now(s->engine->loop);
	bool suspects = false;
	unsigned int i;

	/* A pipe that is over leaves its place to the one behind it. */
	for (i = s->path.npipes; i-- > 0;) {
		struct pipe *p = s->path.pipes[i];

		suspects |= x->leg[p->index].suspect_since != 0;
		look_at(s, p, now);
	}
	probe(s, now);
	if (x->kept || suspects)
		loop_timer_in(s->engine->loop, t, LOOK);
}

void suspects_watch(struct extended *x)
{
	if (!x->suspects_timer.slot)
		loop_timer_in(x->s->engine->loop, &x->suspects_timer, LOOK);
}

void suspects_init(struct extended *x)
{
	x->suspects_timer.fire = look;
}

void suspects_stop(struct extended *x)
{
	loop_timer_stop(x->s->engine->loop, &x->suspects_timer);
}
