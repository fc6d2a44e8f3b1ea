/* SPDX-License-Identifier: MIT */
/*
 * One direction of the link, in a time that is handed in:
 *
 *   enter -> number, chance -> queue -> rate or trace -> delay line -> exit
 *
 * With grants a radio is between the queue and the delay line (radio.h), and
 * rate or trace are what its base station has to give.
 *
 * A packet's fate is drawn when it enters, from its number alone. Service is
 * computed at the moments at which it would happen, not at those at which
 * somebody looked: looking late makes packets late, never the rate wrong.
 * Without rate and trace there is no queue.
 *
 * Order is kept (a packet leaves no earlier than the one before it, also when
 * the delay is reduced meanwhile) unless jitter_reorder or reorder ask
 * otherwise.
 */
#ifndef LINKEM_LINK_H
#define LINKEM_LINK_H

#include "../../mux/base/hist.h"
#include "host.h"
#include "line.h"
#include "packet.h"
#include "params.h"
#include "radio.h"
#include "rate.h"
#include "rng.h"

enum link_end {
	LINK_LOST,		/* by the loss model */
	LINK_QUEUE,		/* found the queue full */
	LINK_CODEL,
	LINK_MEMORY,		/* the pool is at its limit */
	LINK_DEVICE,		/* the device did not take it */
	LINK_ENDS,
};

extern const char *const link_end_name[LINK_ENDS];

struct link_count {
	uint64_t packets, bytes;	/* bytes as the rate counts them */
};

struct link_counters {
	struct link_count in, out;
	struct link_count dropped[LINK_ENDS];
	struct link_count duplicated;	/* copies made */
	uint64_t held;			/* chosen to be overtaken */
	uint64_t reordered;		/* left behind one with a higher number */
	uint64_t other_in, other_out;	/* frames that are not numbered */
	uint64_t opportunities, used;	/* of the trace; used: any byte of it */
};

/* Told, if set, of each packet that will not arrive; that a gate fell open. */
struct link_watch {
	void (*drop)(void *arg, int direction, const struct packet *p,
		     enum link_end end, int64_t at);
	void (*fell_open)(void *arg, int direction);
	void *arg;
};

struct link {
	struct params params;
	struct rng rng;
	struct pool *pool;
	struct link_watch watch;
	uint32_t mtu;
	uint64_t next_index;
	uint32_t draw;			/* how often it began anew */
	struct host host;
	struct rate rate;
	struct radio radio;
	struct packet *sending;		/* partly sent by the trace */
	uint32_t sending_left;
	struct line line;
	int64_t floor;			/* when the last one in order leaves */
	uint64_t behind;		/* 1 + the highest number that left */
	struct link_counters count;
	struct hist late;		/* how late packets were written, µs */
};

/* @params becomes the link's own. */
void link_init(struct link *l, int direction, uint64_t seed, uint32_t mtu,
	       struct pool *pool, struct params *params, int64_t now);
void link_fini(struct link *l);

/* Takes over @params from @now on; they become the link's own. */
void link_configure(struct link *l, struct params *params, int64_t now);

/*
 * Chance begins anew: the next packet is number 0 of @seed, a trace is at its
 * start. What is under way stays so, and is no part of the new order.
 */
void link_restart(struct link *l, uint64_t seed, int64_t now);

/* A frame that was read at @now; it is the link's from here. */
void link_enter(struct link *l, struct packet *p, int64_t now);

/* A frame that was read at @now and for which there was no slot. */
void link_enter_lost(struct link *l, const uint8_t *frame, uint32_t len,
		     int64_t now);

/* Lets happen what happens until @now. */
void link_run(struct link *l, int64_t now);

/* The next moment at which there is something to do; NEVER if none. */
int64_t link_next(const struct link *l);

/* The next frame to write at @now, or NULL; it ends in link_done(). */
struct packet *link_exit(struct link *l, int64_t now);
void link_done(struct link *l, struct packet *p, bool written, int64_t at);

/* Bit/s now, of a trace its mean; 0 without a limit. */
uint64_t link_rate(const struct link *l);

/* How long @bytes take at that rate, in ms; 0 without a limit. */
double link_ms(const struct link *l, uint64_t bytes);

#endif
