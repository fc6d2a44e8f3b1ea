/* SPDX-License-Identifier: MIT */
/*
 * What the pipes of a path may hold together: bytes that are in flight and
 * bytes that wait in their sockets.
 *
 * n windows that grow on their own fill whatever queue lies in their way, be it
 * that of the own device or one in the network, and all that comes later waits
 * behind it. So there is a limit to the sum, by one of two laws.
 *
 * AGGREGATE_DELAY (delay.c, and docs/decisions/0010): as much as the path
 * needs, which shows in how long messages take to be acknowledged.
 *
 *	FREE	no queue was seen yet: the limit grows as windows do
 *	BOUND	once a round the limit follows the least round trip of it, so
 *		that the bottleneck has a few milliseconds of work, never many
 *	YIELD	no limit for a while: holding more or less does not change the
 *		queue, so it is other people's, and they would take our share
 *
 * AGGREGATE_DSWA (dswa.c): the paper's S = lambda x RTTmin / RTTest x C.
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

#define AGGREGATE_NONE SIZE_MAX		/* no limit */
#define LAMBDA_MIN 0.1
#define LAMBDA_MAX 100.0

/* A message that was acknowledged; times in ns. */
struct aggregate_ack {
	int64_t sent_at, left_at, acked_at;
	size_t held;		/* by all pipes, it included, when it was sent */
	size_t len;		/* of it; 0: unknown */
	uint64_t delivered;	/* bytes in all, */
	int64_t counted_at;	/* until then */
	int64_t least;		/* round trip that the kernel ever saw, or 0 */
	size_t mss;
	bool more;		/* waits to be sent */
	bool again;		/* its pipe sent something again meanwhile */
	bool datagrams;		/* pass on the path */
};

/* What some messages of a round told: sums, and the least round trip. */
struct aggregate_heard {
	int64_t from;		/* the first of them came */
	unsigned int n, limited;
	unsigned int clean;	/* whose pipe sent nothing again meanwhile: */
	double rtt;		/* of those alone */
	double held, least;
};

/* What the messages of a round told together. */
struct aggregate_round {
	double held, rtt;	/* means, */
	double least;		/* and the least round trip; all in bytes and ns */
	double rate;		/* delivered, bytes a second */
	bool limited;		/* the limit was in the way */
};

enum aggregate_probe { PROBE_NONE, PROBE_MORE, PROBE_LESS };

struct aggregate {
	enum aggregate_mode mode;
	enum aggregate_state state;
	size_t limit;		/* or AGGREGATE_NONE */
	double lambda;
	double rate;		/* bytes a second, of the last round */
	uint64_t rounds, yields, waits;	/* ever */
	bool datagrams;		/* pass on the path, and wait in its queue */
	size_t mss;

	/* how the limit is let out: at a pace after idle, else by a ramp */
	bool after_idle;
	int64_t idle_at;
	size_t ramp_from;
	int64_t ramp_at, ramp_until;
	int64_t expected;	/* round trip, before one is seen */
	/* when the limit was last in the way; as yet, or 0: until then */
	int64_t limited_from, limited_to;
	uint64_t asked;		/* bytes written when one was last to report */
	int64_t asked_at;

	/* what is known of the path */
	double base;		/* round trip without a queue, ns, or UNSEEN */
	bool guessed;		/* by the start; no experiment has looked since */
	int64_t period_at;	/* when it was last looked at with less held, */
	double seen;		/* and the least round trip since then */
	double best;		/* highest rate, until one is found to be wrong */
	double noise;		/* round trip: what changes it besides us */

	/* the path may be silent for a while */
	int64_t heard_at;	/* the last acknowledgement; 0: none came */
	double heard_rtt;	/* and its round trip */
	int64_t silent_to;	/* what was sent before tells nothing */
	int64_t repaired_at;	/* before */

	/* the round, and the one before (held: 0 when it does not compare) */
	int64_t round_at, counted_at;
	uint64_t delivered;
	struct aggregate_heard heard;
	struct aggregate_round before;
	struct aggregate_round earlier;	/* before the one in which a probe began */
	double growth;

	enum aggregate_probe probe;
	double probe_part;	/* of what was held it lets be held */
	bool probe_tells;	/* it is large enough for what else changes round trips */
	size_t probe_from;	/* the limit until then */
	int64_t probe_until;	/* it does not end before, as other paths take part; none begins */
	unsigned int vain;	/* probes that showed others' queue, less those of ours */
	int64_t vain_at;	/* when one that held more last did */
	unsigned int clear;	/* rounds without a queue, in a row, while we yield */
	int64_t yield_until;
	double yield_for;	/* the last time, ns; 0: we were alone since */

	/* FREE: by how much round trips differ without a queue */
	double spread;
	/* and the bytes of a run of several segments that told the base, if it met no other */
	double alone;

	/* FREE: what is delivered since there is a queue */
	unsigned int queued;	/* messages in a row that met a long one, */
	int64_t queued_at;	/* and since when no one has met none; or 0 */
	int64_t train_at;
	uint64_t train;
	struct {
		double rtt, held;
	} met;			/* the shortest, and what was held then */
};

void aggregate_init(struct aggregate *a, enum aggregate_mode mode,
		    double lambda, int64_t now);

/* What may be written now, while the pipes hold @held; 0: wait. */
size_t aggregate_room(const struct aggregate *a, size_t held, int64_t now);

/*
 * Datagrams pass, and segments are so far apart that a datagram notices each that it waits for. Then
 * nothing goes beyond the limit but datagrams: a message has as many bytes as there is room for, and
 * waits for room of half a segment at least.
 */
bool aggregate_is_exact(const struct aggregate *a);

/* The least of the round trips that each pipe saw, and their mean: at first, of
 * their handshakes. 0: one has not seen any. */
void aggregate_expect(struct aggregate *a, int64_t least, int64_t mean);

/* Somebody had to wait because of the limit. */
void aggregate_limited(struct aggregate *a, int64_t now);

/* Nobody has to: there is nothing to send, or the pipes take nothing. */
void aggregate_unlimited(struct aggregate *a, int64_t now);

/* One was acknowledged that had gone out at once: its pipe had nothing unsent. */
void aggregate_acked(struct aggregate *a, const struct aggregate_ack *ack);

/*
 * The @first path of the session begins an experiment. This one takes part where its own limit is
 * in the way: it holds less or more at the same time, and learns from it as from its own. Returns
 * whether it does.
 */
bool aggregate_joins(struct aggregate *a, const struct aggregate *first,
		     int64_t now);

/* How long a round takes, in ns, by the one before. */
int64_t aggregate_round_takes(const struct aggregate *a);

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

/* The path's round trip without a queue, as the law takes it; 0 while unknown. */
int64_t aggregate_base(const struct aggregate *a);

const char *aggregate_state_name(enum aggregate_state state);
const char *aggregate_mode_name(enum aggregate_mode mode);	/* NULL: none */

#endif
