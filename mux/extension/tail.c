/* SPDX-License-Identifier: MIT */
#include "tail.h"

/* Linux waits 40 ms for a second segment, by a clock of up to 10 ms. */
#define DELAYED_ACK INT64_C(50000000)

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/*
 * What had to wait in its socket left when an acknowledgement made room for it; what is
 * repaired was sent again when one told of the gap.
 */
static int64_t left_at(const struct tail *t)
{
	if (t->left_at_once && !t->unsent && !t->astray)
		return t->written_at;
	return later(t->written_at, t->heard_at);
}

int64_t tail_patience(int64_t round_trip, int64_t patience)
{
	return later(patience, round_trip + round_trip / 2);
}

/*
 * A gap is believed in after a quarter of a round trip: segments may be swapped. That
 * an acknowledgement is delayed and comes by the slowest way is not looked for.
 */
static int64_t wait(const struct tail *t)
{
	int64_t least = tail_patience(t->round_trip, t->patience);
	int64_t variation = (t->patience - t->round_trip) / 4;

	if (t->astray)
		return least + t->round_trip / 4;
	if (t->outstanding > t->segment ||
	    (t->prompt && tail_is_thin(t->outstanding, t->segment)))
		return least;
	return later(least,
		     t->round_trip + 2 * variation + DELAYED_ACK);
}

int64_t tail_overdue_at(const struct tail *t)
{
	bool closed = !t->in_flight && !t->astray;

	if (!t->outstanding || closed || !t->patience)
		return TAIL_NEVER;
	return left_at(t) + wait(t);
}

bool tail_affords(uint64_t sent, uint64_t copied, size_t len)
{
	return copied + len <= TAIL_BURST + sent / TAIL_SHARE;
}
