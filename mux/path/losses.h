/* SPDX-License-Identifier: MIT */
/*
 * The paper's rule for a mixed set of pipes: traffic is on the TCP pipes until
 * more than a share of the segments they send are sent again, then on the SCTP
 * pipes until it is less.
 *
 * Measured over a window of LOSSES_WINDOW, on the pipes that carry the traffic:
 * those on standby send nothing that could tell. On all of them alike, a segment sent
 * again over segments sent. The way back asks for half of the threshold, seen over a
 * whole window, so that what lies at the threshold does not swing; and a
 * handful of segments is no evidence either way.
 *
 * No sockets, no clock: fed with totals.
 */
#ifndef TM3_LOSSES_H
#define TM3_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/loop.h"

#define LOSSES_WINDOW (4 * NS_PER_SEC)
#define LOSSES_DEFAULT 0.5	/* percent: the paper's */

enum {
	LOSSES_STEPS = 16,	/* in a window */
	LOSSES_SENT = 300,	/* segments in it, or it says nothing */
	LOSSES_AGAIN = 3,	/* lost ones, or it was chance */
};

#define LOSSES_STEP (LOSSES_WINDOW / LOSSES_STEPS)

struct losses {
	double threshold;	/* share */
	bool on_sctp;		/* traffic: above the threshold */
	double share;		/* at the last switch */
	unsigned int switches;	/* ever */
	struct losses_at {
		int64_t at;
		uint64_t sent, again;	/* totals */
	} seen[LOSSES_STEPS + 1];
	unsigned int first, count;
};

void losses_init(struct losses *l, double percent);

/*
 * Totals of the pipes that carry the traffic, once in LOSSES_STEP. True: it
 * goes to the others from now on, and the next totals are to be theirs.
 */
bool losses_add(struct losses *l, int64_t now, uint64_t sent, uint64_t again);

/* In the window: segments, those of them sent again, and the share. */
uint64_t losses_sent(const struct losses *l);
uint64_t losses_again(const struct losses *l);
double losses_share(const struct losses *l);

#endif
