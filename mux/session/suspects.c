/* SPDX-License-Identifier: MIT */
/*
 * Pipes that look dead. The kernel says so only after many seconds, if at all; but
 * each end knows what the other proxy has parsed. A pipe is suspect when the oldest
 * of what is kept for it is older than SUSPECT_LEAST and than three times what
 * acknowledgements take (lately, but a round trip at least), and another pipe made progress
 * since or is free. What is kept for it then goes again on others, and it gets nothing new.
 * It is cleared when all that it was given has been parsed: an ACK of a part may be of what
 * came before the pipe died, late, by way of another one. Or as soon as its kernel hears of what
 * it had not when the pipe became suspect: that comes by the pipe itself. Without any progress for
 * SUSPECT_PATIENCE it is ended, and LP dials it again.
 * If no pipe of its path made progress meanwhile, but one of another path did, then all of that
 * path are suspect at once: what goes again would else wait on one after the other.
 *
 * Where no pipe of a path made progress for STALLED_LEAST, nor for three times what
 * acknowledgements take, the network may have changed under all of them: LP dials one
 * again as a probe, and all others of the path that wait as soon as that one is welcomed; those
 * that had nothing to wait for are asked.
 * Where another one makes progress first, the network is what it was: the probe is a
 * pipe that is lacking as any other, and says nothing of those that are there.
 */
#include "../base/log.h"
#include "extended.h"

#define LOOK (50 * NS_PER_MS)
#define SUSPECT_LEAST (400 * NS_PER_MS)
#define SUSPECT_PATIENCE (5 * NS_PER_SEC)
#define STALLED_LEAST NS_PER_SEC

/* No acknowledgement is sooner than a round trip of @p, and that is known before one came. */
int64_t suspects_patience(struct extended *x, const struct pipe *p,
			  int64_t least)
{
	int64_t trip = (int64_t)(p->info.rtt_ms * NS_PER_MS);
	int64_t takes = ways_of(x, p->index)->ack_takes;

	takes = 3 * (takes > trip ? takes : trip);
	return takes > least ? takes : least;
}

void suspects_watch(struct extended *x)
{
	if (!x->suspects_timer.slot)
		loop_timer_in(x->s->engine->loop, &x->suspects_timer, LOOK);
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
	pipe_look(p, now);
	leg->suspect_since = now;
	leg->suspect_at = pipe_outstanding(p) ? pipe_arrived(p) : UINT64_MAX;
	p->relieved = true;
	standby_find(s);
	keeping_suspect(s->ext, leg);
	/* What it held may be at the other end by another path: then nothing is kept. */
	suspects_watch(s->ext);
}

/* Did a pipe of @path make progress since @at? Or one of another path, if not @on it. */
static bool goes_on(struct session *s, const struct path *path, bool on,
		    int64_t at)
{
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		const struct pipe *p = s->paths.pipes[i];

		if ((p->path == path) == on &&
		    s->ext->leg[p->index].progress_at > at)
			return true;
	}
	return false;
}

/* One that holds nothing could make no progress, so it is asked. */
static void suspect_path(struct session *s, const struct path *path, int64_t now)
{
	unsigned int i;

	for (i = 0; i < path->npipes; i++) {
		struct pipe *p = path->pipes[i];

		if (s->ext->leg[p->index].suspect_since)
			continue;
		control_ask(s, p);
		suspect(s, p, now);
	}
}

/*
 * LP's device is down, or its user wants nothing on it any more. What is kept for it goes again
 * where there is another path to take it.
 */
void suspects_off(struct session *s, const struct path *path)
{
	int64_t now = loop_now(s->engine->loop);
	unsigned int i;

	if (path->npipes == s->paths.npipes)
		return;
	for (i = 0; i < path->npipes; i++) {
		struct pipe *p = path->pipes[i];
		const struct leg *leg = &s->ext->leg[p->index];

		if (!leg->suspect_since && keeping_oldest(leg))
			suspect(s, p, now);
	}
}

static void clear(struct session *s, struct pipe *p)
{
	s->ext->leg[p->index].suspect_since = 0;
	p->relieved = false;
	standby_find(s);
	loop_after(s->engine->loop, &s->out.pump);
}

static bool is_back(struct pipe *p, const struct leg *leg, int64_t now)
{
	pipe_look(p, now);
	return pipe_arrived(p) > leg->suspect_at;
}

/*
 * One batch of events has one time, and may bring both what made the pipe suspect and the ACK
 * that clears it.
 */
static void look_at(struct session *s, struct pipe *p, int64_t now)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[p->index];
	int64_t oldest = keeping_oldest(leg), last = leg->suspect_since;
	char why[80];

	if (leg->suspect_since && leg->progress_at >= leg->suspect_since) {
		last = leg->progress_at;
		if (leg->heard == leg->kept.sent)
			clear(s, p);
	}
	if (leg->suspect_since && is_back(p, leg, now))
		clear(s, p);
	if (!leg->suspect_since) {
		if (oldest &&
		    now - oldest > suspects_patience(x, p, SUSPECT_LEAST) &&
		    others_go_on(x, leg, oldest)) {
			suspect(s, p, now);
			if (!goes_on(s, p->path, true, oldest) &&
			    goes_on(s, p->path, false, oldest))
				suspect_path(s, p->path, now);
		}
		return;
	}
	if (now - last < SUSPECT_PATIENCE)
		return;
	snprintf(why, sizeof(why), "pipe %u: nothing was acknowledged for %.1f s",
		 p->index, (double)(now - last) / NS_PER_SEC);
	extended_pipe_ended(s, p, false, why);
}

/* --- none makes progress --- */

/* The pipe of @way that waits longest, if all that wait have done so for long. */
static struct pipe *stalled(const struct way *way, int64_t now)
{
	const struct path *path = ways_path(way);
	struct pipe *longest = NULL;
	int64_t since = now;
	unsigned int i;

	for (i = 0; i < path->npipes; i++) {
		struct pipe *p = path->pipes[i];
		const struct leg *leg = &way->x->leg[p->index];
		int64_t oldest = keeping_oldest(leg);

		if (now - leg->progress_at <
		    suspects_patience(way->x, p, STALLED_LEAST))
			return NULL;
		if (oldest && oldest < since) {
			longest = p;
			since = oldest;
		}
	}
	if (!longest ||
	    now - since <= suspects_patience(way->x, longest, STALLED_LEAST))
		return NULL;
	return longest;
}

static bool any_goes_on(const struct way *way, int64_t since)
{
	const struct path *path = ways_path(way);
	unsigned int i;

	for (i = 0; i < path->npipes; i++) {
		if (way->x->leg[path->pipes[i]->index].progress_at > since)
			return true;
	}
	return false;
}

static void probe(struct way *way, int64_t now)
{
	struct pipe *p;

	if (way->probing_since && any_goes_on(way, way->probing_since))
		way->probing_since = 0;
	p = way->probing_since ? NULL : stalled(way, now);
	if (!p)
		return;
	way->probing_since = now;
	extended_pipe_ended(way->x->s, p, false, "no pipe makes progress: one is dialled again");
}

/* The new pipe holds nothing yet. Of one that held nothing for long nobody knows: it is asked. */
void suspects_probed(struct way *way)
{
	const struct path *path = ways_path(way);
	struct session *s = way->x->s;
	int64_t now = loop_now(s->engine->loop), since = way->probing_since;
	unsigned int i;

	way->probing_since = 0;
	for (i = path->npipes; since && i-- > 0;) {
		struct pipe *p = path->pipes[i];
		const struct leg *leg = &way->x->leg[p->index];
		int64_t oldest = keeping_oldest(leg);

		if (leg->progress_at > since)
			continue;
		if (oldest && now - oldest > STALLED_LEAST)
			extended_pipe_ended(s, p, false, "another one was dialled and works");
		else
			control_ask(s, p);
	}
}

static void look(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, suspects_timer);
	struct session *s = x->s;
	int64_t now = loop_now(s->engine->loop);
	bool suspects = false;
	unsigned int i;

	/* A pipe that has ended leaves its place to the one behind it. */
	for (i = s->paths.npipes; session_is_up(s) && i-- > 0;) {
		struct pipe *p = s->paths.pipes[i];

		suspects |= x->leg[p->index].suspect_since != 0;
		look_at(s, p, now);
	}
	for (i = 0; x->lp && session_is_up(s) && i < s->paths.npaths; i++)
		probe(&x->way[i], now);
	if (x->kept || suspects)
		suspects_watch(x);
}

void suspects_init(struct extended *x)
{
	x->suspects_timer.fire = look;
}

void suspects_stop(struct extended *x)
{
	loop_timer_stop(x->s->engine->loop, &x->suspects_timer);
}
