/* SPDX-License-Identifier: MIT */
/*
 * The pipe policies: each a line or two, so they share a file.
 */
#include "../conn/conn.h"
#include "../path/path.h"
#include "../pipe/pipe.h"
#include "sched.h"

/* Least unsent, then least in flight, then the first. */
static unsigned int pick_least(struct sched *s, struct pipe *const *able,
			       unsigned int n)
{
	unsigned int best = 0, i;

	(void)s;
	for (i = 1; i < n; i++) {
		const struct pipe_info *a = &able[i]->info;
		const struct pipe_info *b = &able[best]->info;

		if (a->unsent < b->unsent ||
		    (a->unsent == b->unsent && a->in_flight < b->in_flight))
			best = i;
	}
	return best;
}

#define ALIKE_MS 0.1

/*
 * When would a segment reach the other end, in ms? Where the window is open
 * it leaves at once; else when so much was acknowledged, a window a round
 * trip. Pipes whose paths differ by less than an eighth, or a tenth of a
 * millisecond, count as alike, or chance would fill one after the other.
 */
static double arrival(const struct pipe *p, double nearest)
{
	const struct pipe_info *info = &p->info;
	double window = (double)info->cwnd * info->mss;
	double ahead = (double)(info->unsent + info->in_flight +
				info->unfilled + info->mss);
	double path = info->rttmin_ms > nearest * 1.125 + ALIKE_MS ?
		(info->rttmin_ms - nearest) / 2 : 0;

	return path + (ahead > window && window > 0 ?
		(ahead - window) * info->rtt_ms / window : 0);
}

static double nearest(struct pipe *const *able, unsigned int n)
{
	double least = able[0]->info.rttmin_ms;
	unsigned int i;

	for (i = 1; i < n; i++) {
		if (able[i]->info.rttmin_ms < least)
			least = able[i]->info.rttmin_ms;
	}
	return least;
}

/*
 * Of two paths that would do, the one with the lower cost. Of pipes, the one that is about to write a
 * segment in which there is room.
 */
static bool is_better(const struct pipe *a, const struct pipe *b)
{
	if (a->path->cost != b->path->cost)
		return a->path->cost < b->path->cost;
	if (pipe_gathers_more(a) != pipe_gathers_more(b))
		return pipe_gathers_more(a);
	if (pipe_has_half_a_pair(a) != pipe_has_half_a_pair(b))
		return pipe_has_half_a_pair(a);
	return pipe_held(a) < pipe_held(b);
}

/* So that messages arrive in the order of their numbers. */
static unsigned int pick_soonest(struct sched *s, struct pipe *const *able,
				 unsigned int n)
{
	double near = nearest(able, n);
	double least = 0;
	unsigned int best = 0, i;

	(void)s;
	for (i = 0; i < n; i++) {
		double at = arrival(able[i], near);

		if (i && (at > least ||
			  (at >= least && !is_better(able[i], able[best]))))
			continue;
		least = at;
		best = i;
	}
	return best;
}

/* The first at or behind the turn, by index, round the circle. */
static unsigned int pick_rr(struct sched *s, struct pipe *const *able,
			    unsigned int n)
{
	unsigned int best = 0, least = s->npipes, i;

	for (i = 0; i < n; i++) {
		unsigned int ahead = (able[i]->index + s->npipes - s->turn) %
				     s->npipes;

		if (ahead < least) {
			least = ahead;
			best = i;
		}
	}
	s->turn = (able[best]->index + 1) % s->npipes;
	return best;
}

/* splitmix64: seeded, so that a run can be had again. */
static unsigned int pick_random(struct sched *s, struct pipe *const *able,
				unsigned int n)
{
	uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

	(void)able;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (unsigned int)((z ^ (z >> 31)) % n);
}

static bool carries_fixed(const struct sched *s, const struct pipe *p,
			  const struct conn *c)
{
	return c->id % s->npipes == p->index;
}

const struct pipe_policy sched_least = {
	.name = "least",
	.summary = "least unsent, then least in flight",
	.pick = pick_least,
};

const struct pipe_policy sched_soonest = {
	.name = "soonest",
	.summary = "where it arrives first",
	.pick = pick_soonest,
};

const struct pipe_policy sched_rr = {
	.name = "rr",
	.summary = "round robin",
	.pick = pick_rr,
};

const struct pipe_policy sched_random = {
	.name = "random",
	.summary = "any, by --seed",
	.pick = pick_random,
};

const struct pipe_policy sched_fixed = {
	.name = "fixed",
	.summary = "every connection stays on one pipe",
	.pick = pick_least,
	.carries = carries_fixed,
};
