/* SPDX-License-Identifier: MIT */
/*
 * What the pipes of a session may hold together: bytes that are in flight and
 * bytes that wait in their sockets.
 *
 * n windows that grow on their own fill whatever queue lies in their way, be it
 * that of the own device or one in the network, and all that comes later waits
 * behind it. So there is a limit to the sum, in one of two ways.
 *
 * AGGREGATE_DELAY: as much as the path needs. A message that was acknowledged
 * tells what the pipes held when it was sent and how long it took: bytes by
 * time is the rate. The limit is rate x (base + slack), where base is the
 * smallest round trip of late and the slack some milliseconds, so that the
 * bottleneck has a few segments to work on, never many:
 *
 *	FREE	nothing was seen to queue yet, or not for long: the limit is some
 *		first windows and grows as they do, until it is none
 *	BOUND	the limit follows once a round (a round trip and some messages)
 *	YIELD	no limit for a while: the queue stays when our share of it has
 *		gone, so it is other people's, and they would only take our share
 *
 * AGGREGATE_DSWA: the paper's S = lambda x RTTmin / RTTest x C, of all pipes.
 *
 * No sockets, no clock: fed with numbers.
 */
#ifndef TM3_AGGREGATE_H
#define TM3_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../settings/settings.h"

enum aggregate_state { AGGREGATE_FREE, AGGREGATE_BOUND, AGGREGATE_YIELD };

enum { RATES = 2 };

#define AGGREGATE_NONE SIZE_MAX		/* no limit */
#define LAMBDA_MIN 0.1
#define LAMBDA_MAX 100.0

/* A message that was acknowledged; times in ns. */
struct aggregate_ack {
	int64_t sent_at, left_at, acked_at;
	size_t held;		/* by all pipes, it included, when it was sent */
	size_t before;		/* held before it was written */
	uint64_t delivered;	/* bytes in all, */
	int64_t counted_at;	/* until then */
	size_t mss;
	bool more;		/* waits to be sent */
};

struct aggregate {
	enum aggregate_mode mode;
	enum aggregate_state state;
	size_t limit;		/* or AGGREGATE_NONE */
	double rate;		/* bytes a second: the highest of these rounds */
	double rates[RATES];
	double lambda;
	int64_t base_new, base_old;	/* smallest round trips of two periods */
	int64_t period_at;	/* the newer one began */
	bool dipping;		/* to see the path without our queue */
	int64_t dip_from;	/* base until then */

	bool fresh;		/* nothing was acknowledged yet, or after a rest */
	int64_t fresh_at;
	int64_t expected;	/* round trip, before one is seen */

	/* this round */
	int64_t round_at;
	unsigned int samples;
	int64_t least;		/* smallest round trip in it */
	double most;		/* highest rate in it */
	double latest;		/* rate: the last sample's, or delivery */
	bool limited;		/* the limit was in the way */

	int64_t train_at;	/* since then there is a queue, */
	uint64_t train;		/* and so much had been delivered */
	double delivery;	/* rate: since then, or of a train before, */
	bool old;		/* of the round before */

	int64_t least_before;	/* round trip of the round before, */
	size_t limit_before;	/* with this limit, or 0: with none */
	uint64_t rounds, yields, refusals;	/* ever */
	double best_new, best_old;	/* highest rates of two periods */
	unsigned int in_vain;	/* rounds in which giving way did not help */
	unsigned int leaps;	/* messages in a row behind a long queue */
	unsigned int met;	/* the same, with nothing of ours before them */
	unsigned int short_of;	/* rounds with nothing queued at the limit */
	uint64_t asked;		/* bytes written when one was last to report */
	int64_t asked_at;
	int64_t limited_at;	/* the limit was last in the way */
	int64_t yield_until, yield_for;
	int64_t calm_since;	/* BOUND, and the queue as wished */
};

void aggregate_init(struct aggregate *a, enum aggregate_mode mode,
		    double lambda, int64_t now);

/* What may be written now, while the pipes hold @held; 0: wait. */
size_t aggregate_room(const struct aggregate *a, size_t held, int64_t now);

/* The round trip as the pipes saw it when they were dialled. */
void aggregate_expect(struct aggregate *a, int64_t rtt);

/* Somebody had to wait because of the limit. */
void aggregate_refused(struct aggregate *a, int64_t now);

/* One was acknowledged that had gone out at once: its pipe had nothing unsent. */
void aggregate_acked(struct aggregate *a, const struct aggregate_ack *ack);

/* DSWA: the pipes' windows in all, bytes, and their round trips. */
void aggregate_windows(struct aggregate *a, double cwnd, double rttmin,
		       double rtt, size_t mss);

/*
 * Shall the message that is about to be written report its acknowledgement,
 * after @written bytes in all, of which the pipes hold @held? About one a
 * millisecond, fewer without a limit; and often what meets an empty path.
 */
bool aggregate_asks(struct aggregate *a, uint64_t written, size_t held,
		    int64_t now);

/* The smallest round trip of late; 0 as long as there was none. */
int64_t aggregate_base(const struct aggregate *a);

const char *aggregate_state_name(enum aggregate_state state);
const char *aggregate_mode_name(enum aggregate_mode mode);	/* NULL: none */

#endif
