/* SPDX-License-Identifier: MIT */
/*
 * What a session looks at now and then: samples for the statistics, and peers that
 * vanished. And with which pipes a path begins, since its limit goes by what these tell.
 */
#include <stdio.h>

#include "../base/log.h"
#include "../base/memory.h"
#include "queues.h"
#include "session_inside.h"

#define CHECK_INTERVAL (2 * NS_PER_SEC)

static void sample_queues(struct session *s, struct stats *stats)
{
	int64_t now = loop_clock();
	struct queues q;

	if (!stats || now < s->survey.queues_due)
		return;
	s->survey.queues_due = now + queues_pause(s->nconns);
	q = queues_of(s);
	stats_queues(stats, s->number, &q, queues_wait_name(s));
}

static void sample_path(struct session *s, unsigned int number)
{
	const struct path *path = &s->paths.path[number];
	struct stats *stats = s->engine->stats;

	if (s->paths.npaths > 1)
		stats_path(stats, s->number, number, path,
			   path_set_name(&s->engine->settings->paths, number),
			   paths_stands_by(&s->paths, path));
	stats_aggregate(stats, s->number, number, path);
	if (path->mixed)
		stats_losses(stats, s->number, number, &path->losses);
}

void survey_sample(struct session *s, const char *state)
{
	struct stats *stats = s->engine->stats;
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		pipe_look_closely(s->paths.pipes[i], loop_clock());
		stats_pipe(stats, s->number,
			   paths_number(&s->paths, s->paths.pipes[i]),
			   s->paths.pipes[i], state);
	}
	for (i = 0; i < s->paths.npaths; i++) {
		if (s->paths.path[i].begun)
			sample_path(s, i);
	}
	sample_queues(s, stats);
	stats_flush(stats);
}

static void sample_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session,
					 survey.sample_timer);

	survey_sample(s, "up");
	loop_timer_in(s->engine->loop, t,
		      (int64_t)(s->engine->settings->stats_interval *
				(double)NS_PER_SEC));
}

/* Of those that this session keeps for what comes next, and did not use since the last call. */
static bool free_buffers(struct session *s)
{
	bool freed = run_pool_release(&s->shared.pool);
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++)
		freed |= partial_release(&s->paths.pipes[i]->partial);
	return freed;
}

/*
 * Traffic that ended leaves nothing behind for long. To look through the heap for what can go back
 * takes time, so it waits until no session of this thread has a bulk under way, and is not done for
 * each where many become idle.
 */
static void become_idle(struct session *s, int64_t now)
{
	struct engine *engine = s->engine;

	engine->idle |= free_buffers(s);
	if (!engine->idle || engine->kept ||
	    now - engine->gave_back_at < CHECK_INTERVAL)
		return;
	memory_forget(s->shared.scratch, s->shared.scratch_size);
	memory_give_back();
	engine->gave_back_at = now;
	engine->idle = false;
}

/* A peer that vanished without a word leaves nothing behind for long. */
static void check_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session,
					 survey.check_timer);
	int64_t now = loop_clock();
	char why[64];
	unsigned int i;

	become_idle(s, now);
	/* A pipe that has ended may leave its place to the one behind it. */
	for (i = s->paths.npipes; session_is_up(s) && i-- > 0;) {
		struct pipe *p = s->paths.pipes[i];

		if (!pipe_is_unheard(p, now, UNHEARD_SECONDS * NS_PER_SEC))
			continue;
		snprintf(why, sizeof(why),
			 "pipe %u: nothing was acknowledged for %d s", p->index,
			 UNHEARD_SECONDS);
		s->dialect->pipe_ended(s, p, false, why);
	}
	if (!s->dead)
		loop_timer_in(s->engine->loop, t, CHECK_INTERVAL);
}

/* --- the beginning and the end --- */

/*
 * A limit that hears of no acknowledgement would never move: rather none. DSWA
 * goes by windows and round trips; the kernel's smoothed round trip over
 * SCTP is in whole clock ticks, each step cut to whole ones: that is no measure.
 */
static bool tells_enough(const struct pipe *p, enum aggregate_mode mode)
{
	return mode == AGGREGATE_DELAY ? p->acks.on :
					 p->transport != TRANSPORT_SCTP;
}

static bool tells_enough_or_say(struct session *s, const struct pipe *p,
				enum aggregate_mode mode)
{
	if (tells_enough(p, mode))
		return true;
	log_info(s->engine->log, "session %u: pipes of %s do not tell enough for --aggregate %s: it is off",
		 s->number, transport_name(p->transport),
		 aggregate_mode_name(mode));
	return false;
}

static enum aggregate_mode aggregate_of(struct session *s,
					const struct path *path)
{
	enum aggregate_mode mode = s->engine->settings->aggregate;
	unsigned int i;

	if (!s->engine->settings->late || mode == AGGREGATE_OFF)
		return AGGREGATE_OFF;
	for (i = 0; i < path->npipes; i++) {
		if (!tells_enough_or_say(s, path->pipes[i], mode))
			return AGGREGATE_OFF;
	}
	return mode;
}

/* With the pipes that are there. */
static void begin_path(struct session *s, struct path *path)
{
	path->begun = true;
	aggregate_init(&path->aggregate, aggregate_of(s, path),
		       s->engine->settings->lambda, loop_clock());
	losses_init(&path->losses, s->engine->settings->sctp_loss);
	standby_watch(s, path);
}

void survey_start(struct session *s)
{
	unsigned int i;

	s->survey.sample_timer.fire = sample_timer;
	s->survey.check_timer.fire = check_timer;
	for (i = 0; i < s->paths.npaths; i++) {
		if (s->paths.path[i].npipes)
			begin_path(s, &s->paths.path[i]);
	}
	if (s->engine->stats)
		sample_timer(&s->survey.sample_timer);
	check_timer(&s->survey.check_timer);
}

void survey_pipe(struct session *s, const struct pipe *p)
{
	enum aggregate_mode mode = p->path->aggregate.mode;

	if (!p->path->begun) {
		begin_path(s, p->path);
		return;
	}
	standby_watch(s, p->path);
	if (mode != AGGREGATE_OFF && !tells_enough_or_say(s, p, mode))
		aggregate_init(&p->path->aggregate, AGGREGATE_OFF,
			       s->engine->settings->lambda, loop_clock());
}

void survey_stop(struct session *s)
{
	struct loop *loop = s->engine->loop;

	loop_timer_stop(loop, &s->survey.sample_timer);
	loop_timer_stop(loop, &s->survey.check_timer);
}
