/* SPDX-License-Identifier: MIT */
#include "thin.h"

#include "../conn/conn.h"
#include "../path/paths.h"
#include "../pipe/pipe.h"

/* The pipe that has the last message of @c unacknowledged, or NULL. */
static struct pipe *last_pipe(const struct paths *paths, const struct conn *c)
{
	unsigned int i;

	for (i = 0; c->last_end && i < paths->npipes; i++) {
		struct pipe *p = paths->pipes[i];

		if (p->serial != c->last_pipe)
			continue;
		return p->tx_bytes + p->queued - pipe_outstanding(p) <
			c->last_end ? p : NULL;
	}
	return NULL;
}

struct pipe *thin_pipe(const struct paths *paths, const struct conn *c,
		       struct pipe *p)
{
	struct pipe *last;

	if (!c->in_flight || c->in_flight >= p->info.mss)
		return p;
	last = last_pipe(paths, c);
	return last && !last->doubtful && pipe_room(last) ? last : p;
}

void thin_sent(const struct paths *paths, struct conn *c, const struct pipe *p,
	       size_t len)
{
	const struct pipe *last = last_pipe(paths, c);

	/* As long as it is thin, all that it has in flight is on that pipe. */
	if (!last)
		c->in_flight = 0;
	else if (c->in_flight < p->info.mss &&
		 c->in_flight > pipe_outstanding(last))
		c->in_flight = (size_t)pipe_outstanding(last);
	c->in_flight += len;
	c->last_pipe = p->serial;
	c->last_end = p->tx_bytes + p->queued + layer_len(p->layer, len);
}
