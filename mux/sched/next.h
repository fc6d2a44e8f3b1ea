/* SPDX-License-Identifier: MIT */
/*
 * The decision: what is sent next, on which pipe, and if nothing, what for it
 * waits and until when.
 *
 * It goes by what is known, without sockets or clock. The engine asks it again
 * after each run that it sent; the model of tests/unit does the same in virtual
 * time. A wait ends by itself at its time; events may end it sooner.
 */
#ifndef TM3_NEXT_H
#define TM3_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "sched.h"

struct path;

enum next_act {
	NEXT_SEND,	/* new bytes of a connection on a pipe */
	NEXT_AGAIN,	/* a run again, as a copy, on a pipe */
	NEXT_TAIL,	/* a copy of what is overdue on another pipe */
	NEXT_DATAGRAMS,	/* those of flows that wait, so many bytes on a pipe */
	NEXT_WAIT,
};

/* What a wait is for, besides its time. */
enum next_wait {
	WAIT_FOR_DATA,	/* no connection has anything */
	WAIT_FOR_PIPES,	/* those that may be used take nothing now */
	WAIT_FOR_LIMIT,	/* the pipes hold together what they may */
	WAIT_FOR_OTHERS,	/* one pipe lags, and the others wait for it */
	WAIT_FOR_ACK,	/* as much is kept as may be */
};

#define NEXT_NEVER INT64_MAX	/* only an event ends this wait */

struct view {
	struct sched *sched;
	struct path *path;
	int64_t now;
	struct run *again;	/* goes ahead of what is new; or NULL */
	bool tail;		/* a copy of what is overdue goes ahead, too */
	bool full;		/* nothing new may be sent */
	bool datagram;		/* one waits: it goes ahead of all others, */
	struct pipe *datagram_on;	/* on this pipe alone; NULL: on any */
};

struct next {
	enum next_act act;
	struct pipe *pipe;
	struct conn *conn;	/* NEXT_SEND, */
	size_t bytes;		/* of payload at most, in whole messages; also
				   NEXT_DATAGRAMS */
	size_t payload;		/* of each */
	struct run *again;	/* NEXT_AGAIN */
	enum next_wait wait;	/* NEXT_WAIT, */
	int64_t until;		/* by the view's clock */
};

struct next sched_next(const struct view *view);

#endif
