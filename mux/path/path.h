/* SPDX-License-Identifier: MIT */
/*
 * A path: a way through the network, and what its pipes share.
 *
 * The path owns the limit to what its pipes hold together, what is known of its
 * round trips and its rate, and in a mixed set of pipes how much it loses. Which
 * paths a session has is told in paths.h.
 *
 * A path asks its pipes how they do by path_look() alone, and pipes ask their
 * carriers; all else is numbers. So a model with a carrier of its own drives
 * the same code without a socket.
 */
#ifndef TM3_PATH_H
#define TM3_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../pipe/owed.h"
#include "../settings/limits.h"
#include "aggregate.h"
#include "losses.h"
#include "variation.h"

struct ack_asked;
struct pipe;

struct path {
	uint8_t number;		/* of it in its session */
	bool backup;		/* it carries nothing while another path lives, */
	bool off;		/* or whatever the others do */
	uint16_t cost;
	struct pipe *pipes[PIPES_MAX];
	unsigned int npipes;
	uint64_t written;	/* bytes given to its pipes, */
	uint64_t reinjected;	/* and of them, copies of what may still arrive by another pipe */
	bool twin_last;		/* the last that was to go on it was a twin, ahead of what is new */
	struct passing passing;
	int64_t came_at;	/* a connection's bytes came on it, the last time; 0: never */
	uint64_t delivered_before;	/* by pipes that left */
	struct aggregate aggregate;
	struct variation variation;	/* of what left since its limit */
	int64_t steady_at;	/* was known, from here on */
	int64_t looked_at;	/* the pipes' figures are as of then */
	/* Of several paths: bytes given to it that by its rate had not left at @given_at, */
	double given;
	int64_t given_at;	/* when it was given something for the last time; 0: its rate was unknown */

	bool begun;		/* it had a pipe, and is looked at since */
	bool mixed;		/* it has had pipes of SCTP and others at a time: */
	struct losses losses;	/* how much is lost, */
	uint64_t sent, again;	/* and segments, of pipes that carried */
};

/*
 * Pipes come and go, as paths.h has it. What a pipe had delivered stays counted when it
 * leaves.
 */
void path_add(struct path *path, struct pipe *p);
void path_remove(struct path *path, struct pipe *p);

/* Brings the figures of all its pipes up to date, @now by loop_clock(). */
void path_look(struct path *path, int64_t now);

/* Of its pipes, which it has: the least that any ever saw, and the least smoothed one, in ms. */
double path_base_ms(const struct path *path);
double path_trip_ms(const struct path *path);

/*
 * Its round trip without a queue, in ns: by the law that sets its limit, or as long as that knows
 * none (or never does, as AGGREGATE_OFF and AGGREGATE_DSWA) the least that its pipes ever saw.
 * 0: neither is known.
 */
int64_t path_round_trip(const struct path *path);

/* Bytes that its pipes hold together. */
size_t path_held(const struct path *path);

/* The same without what waits in their sockets, as of the last look. */
size_t path_in_flight(const struct path *path);

/* What may be written now, all pipes together; 0: the limit is in the way. */
size_t path_room(struct path *path, int64_t now);

/*
 * The same for what goes ahead of others: it may go beyond the limit by a quarter of
 * it, so as not to wait for what was sent before it.
 */
size_t path_room_ahead(struct path *path, int64_t now);

/* The limit is not what keeps anybody waiting: no data, or no pipe. */
void path_unlimited(struct path *path, int64_t now);

/*
 * @len bytes are about to be written to one of its pipes. Returns true when the limit
 * wants to hear of their acknowledgement; @before are the bytes held without them.
 */
bool path_sends(struct path *path, size_t len, int64_t now, size_t *before);

/*
 * What was asked for on @p was acknowledged @at; @more: connections wait to
 * send.
 */
void path_acked(struct path *path, const struct pipe *p,
		const struct ack_asked *what, int64_t at, int64_t now,
		bool more);

#endif
