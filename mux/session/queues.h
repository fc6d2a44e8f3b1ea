/* SPDX-License-Identifier: MIT */
/*
 * What stands in a session's queues at the moment, and what its connections
 * wait for. A connection counts once: for the first of these reasons that is true.
 */
#ifndef TM3_QUEUES_H
#define TM3_QUEUES_H

#include <stddef.h>
#include <stdint.h>

struct session;

struct queues {
	uint32_t connections;	/* all; each is one of those below */
	uint32_t flows;		/* of datagrams */
	uint32_t connecting;	/* a connect(), a name or a SYN is missing */
	uint32_t missing;	/* later messages are here, the next is not */
	uint32_t taking;	/* its application or server takes no more */
	uint32_t credit;	/* it has bytes, the other end takes none now */
	uint32_t sending;	/* it has bytes, and it is not their turn */
	uint32_t ending;	/* over for the pipes */
	uint32_t idle;		/* nothing of it is under way here */
	uint64_t queued;	/* bytes in order, not taken */
	uint64_t early;		/* bytes out of order, with bookkeeping */
	uint64_t kept;		/* bytes sent and kept until the other end has them */
};

/*
 * Looking costs a moment for each connection: with many it is done more seldom
 * than statistics are written, so that it never takes a noticeable share.
 */
int64_t queues_pause(unsigned int connections);

struct queues queues_of(const struct session *s);

/* What nothing was sent for, the last time that there was nothing to do. */
const char *queues_wait_name(const struct session *s);

#endif
