/* SPDX-License-Identifier: MIT */
/*
 * Tails: the last bytes that were written to a pipe, with nothing behind them. When
 * one of their segments is lost no later one tells of it, so TCP repairs it by a timer:
 * 200 ms and more. This says from when on they are overdue, so that a copy goes on
 * another pipe; and how much may be sent as copies.
 *
 * A receiver acknowledges two segments at once, but a single one perhaps only after up to
 * 40 ms, hoping for a second: as long as no more than one is outstanding, that is no loss, but
 * for a receiver that is known not to wait (promptness.h). Where some arrived behind a gap,
 * TCP repairs the gap by itself, a round trip later.
 *
 * Of more than a segment the last one is timed: those before it have something behind
 * them. Less than a segment is a thin connection's, whose next message may be long in coming:
 * there the oldest is.
 */
#ifndef TM3_TAIL_H
#define TM3_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAIL_NEVER INT64_MAX

/* So much of all that is sent may be copies, and so many bytes more. */
enum { TAIL_SHARE = 100, TAIL_BURST = 64 * 1024 };

/* Of one pipe, all times in ns by one clock. */
struct tail {
	size_t outstanding;	/* bytes written and not acknowledged by the kernel: */
	size_t unsent;		/* of them, so many wait in the socket, */
	size_t in_flight;	/* so many are under way, */
	size_t astray;		/* so many arrived behind a gap, or are taken for lost */
	size_t segment;
	int64_t written_at;	/* the last of them; the oldest where tail_is_thin() */
	bool left_at_once;	/* the window allowed for it */
	int64_t heard_at;	/* an acknowledgement came, the last time */
	int64_t round_trip;
	int64_t patience;	/* srtt + 4 rttvar; 0: not known */
	bool prompt;		/* the other end acknowledges less than a segment at once */
};

/* Less than a segment in all: a read of it tells the other end that nothing follows. */
static inline bool tail_is_thin(size_t outstanding, size_t segment)
{
	return outstanding < segment;
}

/*
 * How long to wait for an acknowledgement at least, where a pipe is known to take @round_trip
 * and @patience. Half a round trip more: round trips that were all alike say nothing of the
 * queue of a burst, ours or others'.
 */
int64_t tail_patience(int64_t round_trip, int64_t patience);

/*
 * When what is outstanding is overdue, unless something is written or heard until then.
 * TAIL_NEVER: nothing is, or the other end's window is closed.
 */
int64_t tail_overdue_at(const struct tail *t);

/* May @len bytes be sent as copies, after @copied of @sent in all? */
bool tail_affords(uint64_t sent, uint64_t copied, size_t len);

#endif
