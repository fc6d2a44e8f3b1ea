/* SPDX-License-Identifier: MIT */
/*
 * Which pipes carry nothing new: those of a path on standby, those that look dead, and where a
 * path has pipes of SCTP and others, those of one kind. Which kind it is goes by how much is
 * lost (path/losses.h).
 */
#include "../base/log.h"
#include "session_inside.h"

static bool is_sctp(const struct pipe *p)
{
	return p->transport == TRANSPORT_SCTP;
}

/* Of those whose turn it is. A set of one kind has no turns. */
static bool has_turn(const struct pipe *p)
{
	return is_sctp(p) == p->path->losses.on_sctp;
}

/* Where none of them can carry anything, the others do. */
static void set_standby(struct path *path, bool standby)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < path->npipes; i++)
		any |= has_turn(path->pipes[i]) && !path->pipes[i]->relieved;
	for (i = 0; i < path->npipes; i++) {
		struct pipe *p = path->pipes[i];

		p->standby = standby || p->relieved || (any && !has_turn(p));
	}
}

void standby_find(struct session *s)
{
	unsigned int i;

	for (i = 0; i < s->paths.npaths; i++)
		set_standby(&s->paths.path[i],
			    paths_stands_by(&s->paths, &s->paths.path[i]));
}

static void say_switch(struct session *s, const struct losses *l)
{
	log_info(s->engine->log, "session %u: %.2f %% of what the %s pipes sent was lost (threshold %g %%): sending over %s",
		 s->number, l->share * 100, l->on_sctp ? "other" : "sctp",
		 l->threshold * 100, l->on_sctp ? "sctp" : "the other pipes");
}

/* By how much it grew. MPTCP's falls when a subflow goes. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* What @p sent since the last time counts if it carries the traffic. */
static void count_losses(struct pipe *p, int64_t now)
{
	pipe_look_closely(p, now);
	if (!p->standby) {
		p->path->sent += grown(p->info.segments, p->judged.sent);
		p->path->again += grown(p->info.retransmits, p->judged.again);
	}
	p->judged.sent = p->info.segments;
	p->judged.again = p->info.retransmits;
}

static void judge_losses(struct session *s, struct path *path, int64_t now)
{
	unsigned int i;

	for (i = 0; i < path->npipes; i++)
		count_losses(path->pipes[i], now);
	if (!losses_add(&path->losses, now, path->sent, path->again))
		return;
	standby_find(s);
	say_switch(s, &path->losses);
	loop_after(s->engine->loop, &s->out.pump);
}

static void losses_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, losses_timer);
	int64_t now = loop_clock();
	unsigned int i;

	for (i = 0; i < s->paths.npaths; i++) {
		if (s->paths.path[i].mixed)
			judge_losses(s, &s->paths.path[i], now);
	}
	loop_timer_in(s->engine->loop, t, LOSSES_STEP);
}

void standby_watch(struct session *s, struct path *path)
{
	unsigned int sctp = 0, i;

	for (i = 0; i < path->npipes; i++)
		sctp += is_sctp(path->pipes[i]);
	standby_find(s);
	if (path->mixed || !sctp || sctp == path->npipes)
		return;
	path->mixed = true;
	if (s->losses_timer.slot)
		judge_losses(s, path, loop_clock());
	else
		losses_timer(&s->losses_timer);
}

void standby_start(struct session *s)
{
	s->losses_timer.fire = losses_timer;
}

void standby_stop(struct session *s)
{
	loop_timer_stop(s->engine->loop, &s->losses_timer);
}
