/* SPDX-License-Identifier: MIT */
/*
 * A modelled TCP connection in virtual time: cumulative and selective
 * acknowledgements, which may be delayed; loss found by what overtook (RACK), by
 * a probe (TLP) and by time; slow start with HyStart, and windows of cubic or
 * of BBR. What lies behind a hole is acknowledged when the hole is filled.
 */
#ifndef TM3_TEST_TCP_H
#define TM3_TEST_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "network.h"

enum { TCP_MSS = 1448, TCP_WINDOW = 10, BBR_ROUNDS = 10 };

/* Behind a hole so many bytes are taken, as Linux does: no window is larger. */
enum { TCP_RECEIVE = 6 << 20 };

struct tcp_ops {	/* by number of the segment */
	void (*left)(void *who, uint64_t number);	/* for the first time */
	void (*delivered)(void *who, uint64_t number);	/* in order */
	void (*acked)(void *who, uint64_t number);
	void (*told)(void *who);	/* after each acknowledgement */
};

struct tcp_segment {
	size_t len;
	enum { TCP_UNSENT, TCP_FLYING, TCP_SACKED, TCP_GONE } state;
	bool again;		/* sent more than once */
	bool arrived;
	bool limited;		/* by the application, when sent */
	int64_t sent_at, arrived_at;
	uint64_t order;		/* of sending */
	uint64_t delivered;	/* bytes in all when it was sent, */
	int64_t counted_at;	/* which were then acknowledged */
};

struct tcp_bbr {
	enum { BBR_STARTUP, BBR_DRAIN, BBR_PROBE, BBR_LEAST } state;
	double rates[BBR_ROUNDS], full, pacing;
	unsigned int slow, phase;
	uint64_t rounds, round_ends;	/* at so much delivered */
	int64_t least, least_at, phase_at, done_at, next_at;
	bool waits;
};

struct tcp {
	struct clock *clock;
	struct network *network;
	const struct tcp_ops *ops;
	void *who;
	enum tcp_cc cc;
	bool delayed_acks;
	bool prompt;		/* but not of segments that are far apart (mux/pipe/owed.h) */

	struct tcp_segment *ring;
	uint64_t room;		/* in it, a power of two */
	uint64_t first, next, end;	/* not acknowledged, sent, written */
	uint64_t gone_from;	/* nothing before it is TCP_GONE */
	size_t flying, unsent, sacked, gone;	/* bytes */
	uint64_t order, delivered, again;
	uint64_t limited_until;	/* by the application, until so much is delivered */
	int64_t counted_at;

	double cwnd, ssthresh;	/* segments */
	double srtt, rttvar, least;	/* ns */
	bool recovering, probed;
	bool repair;		/* what was lost first goes at once */
	bool used;		/* the window was in the way of late */
	uint64_t used_until;	/* when this was acknowledged, look anew */
	double most;		/* segments in flight since then, at most */
	uint64_t recover;
	unsigned int backoff;
	int64_t deadline, timer_at;	/* retransmission; an event is set */
	int64_t heard_at;
	double wmax, k, friendly;	/* cubic */
	int64_t epoch;
	uint64_t round;			/* HyStart */
	double round_least;
	unsigned int round_samples;
	uint64_t rack;			/* order of the latest that arrived */
	int64_t rack_at;
	struct tcp_bbr bbr;

	uint64_t expects;	/* the receiver */
	uint64_t beyond;	/* one more than the last that arrived */
	unsigned int owed;
	uint64_t owed_number;
};

void tcp_init(struct tcp *t, struct clock *clock, struct network *network,
	      enum tcp_cc cc, bool delayed_acks, const struct tcp_ops *ops,
	      void *who);
void tcp_fini(struct tcp *t);
/* Its number: the same as all that were written before. */
uint64_t tcp_write(struct tcp *t, size_t len);
/* Sends what may be sent. */
void tcp_push(struct tcp *t);

static inline struct tcp_segment *tcp_at(const struct tcp *t, uint64_t number)
{
	return &t->ring[number & (t->room - 1)];
}

/*
 * A ring by the segments' numbers, of @room elements of @size bytes: twice as
 * large when those of @first to @end fill it.
 */
void *ring_for(void *ring, size_t size, uint64_t *room, uint64_t first,
	       uint64_t end);

/* tcp_window: what an acknowledgement, a loss and a timeout do to it. */
void window_opens(struct tcp *t, size_t acked, double rtt,
		  const struct tcp_segment *newest);
void window_shrinks(struct tcp *t);
void window_collapses(struct tcp *t);
bool window_paces(struct tcp *t, size_t len);

#endif
