/* SPDX-License-Identifier: MIT */
/*
 * The decision: what is sent next, on which pipe of which path, and if nothing, what
 * for it waits and until when.
 *
 * It goes by what is known, without sockets or clock. The engine asks it again
 * after each run that it sent; the model of tests/unit does the same in virtual
 * time. A wait ends by itself at its time; events may end it sooner.
 */
#ifndef TM3_NEXT_H
#define TM3_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "../settings/limits.h"
#include "sched.h"

struct paths;

enum next_act {
	NEXT_SEND,	/* new bytes of a connection */
	NEXT_AGAIN,	/* a run whose pipe has ended, or looks dead */
	NEXT_TAIL,	/* a copy of another pipe's last messages, which are overdue */
	NEXT_TWIN,	/* a copy of what another path carries, from the beginning */
	NEXT_REPEAT,	/* a copy of what another pipe may still deliver: --reinject */
	NEXT_DATAGRAMS,	/* those of flows that wait, so many bytes */
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

struct twin {
	bool there;
	bool ahead;		/* of what is new, whatever the policy; else as that says */
	int64_t arrives_at;	/* where it is under way, as was forecast */
};

struct view {
	struct sched *sched;
	struct paths *paths;
	int64_t now;
	struct run *again[PATHS_MAX];	/* goes ahead of those that take turns, on a
					   pipe of this path; or NULL */
	bool tail;		/* a copy of what is overdue goes ahead, too, */
	uint8_t tail_paths;	/* bits: over these alone; 0: over any */
	bool full;		/* nothing new may be sent */
	bool twins;		/* some path may carry as well what others carry: */
	struct twin twin[PATHS_MAX];	/* by its number; */
	int64_t twins_at;	/* then there may be more of them; 0: nobody knows */
	bool repeat;		/* what a pipe may still deliver goes again, */
	const struct pipe *repeat_of;	/* of this one, on another, */
	uint8_t repeat_paths;	/* bits: over these alone; 0: over any, */
	bool repeat_ahead;	/* ahead of what is new; else where a pipe would be idle */
	bool scatters;		/* thin connections do not stay on a pipe */
	bool datagram;		/* one waits: it goes ahead of all others, */
	struct pipe *datagram_on;	/* on this pipe alone; NULL: on any */
};

struct next {
	enum next_act act;
	struct pipe *pipe;
	struct conn *conn;	/* NEXT_SEND, */
	size_t bytes;		/* of payload at most, in whole messages unless
				   aggregate_is_exact(); also NEXT_DATAGRAMS */
	size_t payload;		/* of each */
	bool ahead;		/* it goes ahead of those that take turns */
	struct run *again;	/* NEXT_AGAIN */
	enum next_wait wait;	/* NEXT_WAIT, */
	bool pipes;		/* and besides for those of another path */
	int64_t until;		/* by the view's clock */
};

/* Does anything wait to be sent again? */
bool next_has_again(const struct view *view);

struct next sched_next(const struct view *view);

#endif
