/* SPDX-License-Identifier: MIT */
#include "thin.h"

#include "../conn/conn.h"
#include "../path/paths.h"
#include "../pipe/pipe.h"

/* From here on it is not counted how much a round has: it is far from a segment. */
enum { ROUND_MOST = 1 << 30 };

/* The pipe number @serial if what ends at its byte @end is not acknowledged yet, or NULL. */
static struct pipe *unacked_on(const struct paths *paths, uint32_t serial,
			       uint64_t end)
{
	unsigned int i;

	for (i = 0; end && i < paths->npipes; i++) {
		struct pipe *p = paths->pipes[i];

		if (p->serial != serial)
			continue;
		return pipe_arrived(p) < end ? p : NULL;
	}
	return NULL;
}

static struct pipe *last_pipe(const struct paths *paths, const struct conn *c)
{
	return unacked_on(paths, c->last_pipe, c->last_end);
}

/* Neither in the round under way nor in the last whole one did it send a segment. */
static bool is_thin(const struct paths *paths, const struct conn *c, size_t mss)
{
	return c->in_round < mss &&
	       (c->in_last_round < mss ||
		!unacked_on(paths, c->round_pipe, c->round_end));
}

struct pipe *thin_pipe(const struct paths *paths, const struct conn *c,
		       struct pipe *p)
{
	struct pipe *last = last_pipe(paths, c);

	if (!last || last->doubtful || !pipe_room(last))
		return p;
	return is_thin(paths, c, p->info.mss) ? last : p;
}

void thin_sent(const struct paths *paths, struct conn *c, const struct pipe *p,
	       size_t len)
{
	bool idle = !last_pipe(paths, c);

	c->last_pipe = p->serial;
	c->last_end = pipe_end_of(p, len);
	if (idle || !unacked_on(paths, c->round_pipe, c->round_end)) {
		c->in_last_round = idle ? 0 : c->in_round;
		c->in_round = 0;
		c->round_pipe = c->last_pipe;
		c->round_end = c->last_end;
	}
	if (c->in_round < ROUND_MOST)
		c->in_round += (uint32_t)len;
}
