/* SPDX-License-Identifier: MIT */
#include "spread.h"

#include "../pipe/pipe.h"
#include "../settings/limits.h"

/* So far apart may pipes be, a quarter of what the receiver may buffer, */
enum { SPREAD_MAX = REORDER_MAX_SESSION / 4 };

/* and so long do the others wait for the last one; */
#define WAIT_MAX (250 * NS_PER_MS)

/* but as long as it takes where the receiver could soon buffer no more. */
enum { SPREAD_END = REORDER_MAX_SESSION / 4 * 3 };

enum { MARK_STEP = REORDER_MAX_SESSION / PIPE_MARKS };

/* Before @p gets more: one mark for each so many bytes of all pipes. */
static void set_mark(const struct spread *s, struct pipe *p)
{
	unsigned int last = (p->first_mark + p->nmarks - 1) % PIPE_MARKS;

	if (p->nmarks == PIPE_MARKS ||
	    (p->nmarks && s->total - p->marks[last].total < MARK_STEP))
		return;
	p->marks[(p->first_mark + p->nmarks++) % PIPE_MARKS] =
		(struct pipe_mark){ .bytes = p->tx_bytes + p->queued,
				    .total = s->total };
}

void spread_begins(const struct spread *s, struct pipe *p)
{
	p->nmarks = 0;
	p->passed = (struct pipe_mark){ .bytes = p->tx_bytes + p->queued,
					.total = s->total };
}

void spread_gives(struct spread *s, struct pipe *p, size_t len)
{
	set_mark(s, p);
	s->total += len;
}

/*
 * Bytes that the receiver must buffer until the oldest unacknowledged byte of
 * @p arrives: what was given to the other pipes since, less what is under way
 * there (@all: on all pipes).
 */
static int64_t ahead(const struct spread *s, struct pipe *p, uint64_t all)
{
	uint64_t given = p->tx_bytes + p->queued;
	uint64_t here = pipe_outstanding(p);

	while (p->nmarks && p->marks[p->first_mark].bytes + here <= given) {
		p->passed = p->marks[p->first_mark];
		p->first_mark = (p->first_mark + 1) % PIPE_MARKS;
		p->nmarks--;
	}
	return (int64_t)(s->total - p->passed.total) -
		(int64_t)(given - p->passed.bytes) - (int64_t)(all - here);
}

/* Of @p alone. */
static uint64_t awaited(struct pipe *p)
{
	return p->relieved ? 0 : pipe_outstanding(p);
}

bool spread_is_wide(struct spread *s, struct pipe *const *pipes,
		    unsigned int n, int64_t now)
{
	uint64_t all = 0;
	int64_t most = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		all += awaited(pipes[i]);
	for (i = 0; i < n; i++) {
		int64_t bytes = ahead(s, pipes[i], all);	/* moves marks */

		if (awaited(pipes[i]) && bytes > most)
			most = bytes;
	}
	if (most <= SPREAD_MAX) {
		s->since = 0;
		return false;
	}
	if (!s->since)
		s->since = now;
	return most > SPREAD_END || now - s->since < WAIT_MAX;
}
