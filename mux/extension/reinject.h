/* SPDX-License-Identifier: MIT */
/*
 * Reinjection: which messages go again on another pipe although their own may still deliver them.
 *
 *	timely	what is not acknowledged although it was sent srtt + 4 rttvar ago, and nothing was heard of
 *		its pipe for as long: where another pipe would be idle. What a pipe that is heard of
 *		has lost TCP repairs within a round trip. How long is waited is what a tail has
 *		(tail.h): an acknowledgement that is delayed, or comes by a queue, is no loss.
 *	mpflex	what is kept for a pipe whose timer of retransmission expired; and the oldest message,
 *		for each ACK that says that more than three quarters of what the other end may
 *		buffer are out of order. At once, ahead of what is new
 *
 * Each message goes again once at most. What goes again, copies of tails among it, is bounded.
 */
#ifndef TM3_REINJECT_H
#define TM3_REINJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../settings/settings.h"
#include "tail.h"

/* So much of all that is sent may go again, and so many bytes more. */
enum { REINJECT_SHARE = 20, REINJECT_BURST = 64 * 1024 };

/* A pipe's oldest message of those that are not acknowledged and that went on no other one. */
struct reinject_head {
	bool there;
	int64_t sent_at;
	struct tail tail;	/* of the pipe: from this message on; .written_at is not looked at */
	bool timed_out;		/* the pipe's timer expired, and nothing was acknowledged since */
};

/* Of @n heads the one that goes again now, or -1. Then @look_at: when one may; or TAIL_NEVER. */
int reinject_pick(enum reinject_mode mode, bool owed,
		  const struct reinject_head *head, unsigned int n, int64_t now,
		  int64_t *look_at);

/*
 * Is a path alive of which something was acknowledged at @heard_at the last time, on whichever pipe?
 * Where one is silent all of its pipes are, and each is overdue a little later than the one
 * before: until then a copy would go on the same path, and be lost with what it is a copy of.
 */
bool reinject_path_lives(int64_t heard_at, int64_t round_trip, int64_t now);

/* May @len bytes go again, after @again of @sent in all? */
bool reinject_affords(uint64_t sent, uint64_t again, size_t len);

/* mpflex: does an ACK that says that @early of @limit bytes are out of order ask for a message? */
bool reinject_is_asked(uint64_t early, uint64_t limit);

#endif
