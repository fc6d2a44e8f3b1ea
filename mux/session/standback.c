/* SPDX-License-Identifier: MIT */
/*
 * Which pipe is read first, when what they bring is far out of order.
 *
 * Pipes are read in turn, as much from one as from another, and the kernel may
 * hold tens of megabytes for one of them. At gigabytes a second what another
 * pipe brings meanwhile is ahead of all these, and would fill the reorder queue
 * to its limit although nothing is missing: it is here and waits to be read. So
 * a pipe that is ahead stands back for a moment, as long as another one has
 * something to read. Only for a moment: what is wanted may be on any of them.
 */
#include "session_inside.h"

enum { STAND_BACK_FROM = REORDER_MAX_SESSION / 2 };
#define STAND_BACK_FOR (2 * NS_PER_MS)

static bool another_is_unread(const struct session *s, const struct pipe *p)
{
	unsigned int i;

	for (i = 0; i < s->npipes; i++) {
		const struct pipe *q = s->pipes[i];

		if (q != p && !q->paused && q->watch.fd >= 0 &&
		    sock_unread(q->watch.fd))
			return true;
	}
	return false;
}

/* @p was just read. */
void standback_look(struct session *s, struct pipe *p)
{
	if (!s->in.came_early || s->in.held <= STAND_BACK_FROM || s->in.paused ||
	    s->dead || s->stopping || p->paused || p->watch.fd < 0)
		return;
	if (!another_is_unread(s, p))
		return;
	pipe_pause(p, true);
	if (!s->in.standing_back)
		loop_timer_in(s->engine->loop, &s->in.standback_timer,
			      STAND_BACK_FOR);
	s->in.standing_back = true;
}

void standback_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, in.standback_timer);
	unsigned int i;

	s->in.standing_back = false;
	for (i = 0; i < s->npipes && !s->in.paused; i++) {
		if (s->pipes[i]->paused)
			pipe_pause(s->pipes[i], false);
	}
}
