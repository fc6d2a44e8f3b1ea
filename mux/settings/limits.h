/* SPDX-License-Identifier: MIT */
/*
 * The limits that bound what a session takes of memory and time, and what
 * happens at each.
 */
#ifndef TM3_LIMITS_H
#define TM3_LIMITS_H

enum {
	PIPES_MAX = 64,		/* of a session, */
	PATHS_MAX = 7,		/* on so many paths: HINT has a bit for each */

	/* In order for one connection, unwritten: past it the pipes pause, */
	QUEUE_MAX = 16 << 20,
	/* and so they do past this much in all; */
	QUEUE_MAX_SESSION = 256 << 20,
	/* without progress for this long the connection is reset. */
	PAUSE_MS = 2000,
	/*
	 * A connection that goes on slowly may delay the others for so long,
	 */
	STALL_MS = 5000,
	/* and for one part in so many of the time that goes by; */
	STALL_SHARE = 10,
	/* who takes so many bytes a second does not delay them. */
	STALL_RATE = 10 << 20,

	/* Out of order, bookkeeping included: who has most is reset. */
	REORDER_MAX_SESSION = 64 << 20,
	/* For want of one message for so long: the connection is reset. */
	GAP_SECONDS = 30,
	/* Before its SYN, for one connection: the SYN will be refused. */
	EARLY_MAX = 4 << 20,

	/*
	 * All that sessions of a process have charged together, in order, out of order and
	 * kept, where nobody said how much that may be: --memory is a part in so many
	 * of what the machine has.
	 */
	MEMORY_DEFAULT = 640 << 20,
	MEMORY_SHARE = 4,
	/*
	 * Of it: what was sent and is not acknowledged has KEPT_SHARE, connections by
	 * their number, so many bytes each, and what outlives its session have these
	 * parts at most; and so much is there in any case for what waits for
	 * applications and what is out of order.
	 */
	CONN_MEMORY = 2048,
	CONNS_SHARE = 4,
	ORPHANS_SHARE = 8,
	HOARD_SHARE = 8,
	/*
	 * A connection that is refused for want of a place has none, but takes this until
	 * the other end is told: that is charged to its session.
	 */
	CONN_REFUSED_MEMORY = 336,
	/* With keys, what is taken by pipes that have not said HELLO has this one. */
	SHAKING_SHARE = 8,

	/*
	 * A closed id remembers its old owner for so long, and LP rests it. In the baseline
	 * that takes so much.
	 */
	REST_SECONDS = 30,
	FORMER_MEMORY = 80,

	/* A peer that acknowledges nothing for so long is gone. */
	UNHEARD_SECONDS = 20,

	/* What had ended in order goes on without its session, so much of it */
	ORPHANS_MAX = 64 << 20,
	/* and so long. */
	ORPHAN_SECONDS = 60,

	/* In the extension: what the other end may send ahead of applications, all */
	WINDOW_MEMORY = 256 << 20,	/* connections together, and what waits; */
	WINDOW_FIRST = 256 << 10,	/* a session's first, while there is so much, */
	WINDOW_LEAST = 4 << 10,		/* any in any case, */
	WINDOW_MOST = 16 << 20,		/* and none more. */
	/* Memory short: who took nothing for so long and has most is reset. */
	WINDOW_IDLE_SECONDS = 30,
	/* Sent ahead of the answer: on a connection, and on all of them. */
	EARLY_CONN = WINDOW_FIRST,
	EARLY_SESSION = 4 << 20,
	/* What was sent and is not acknowledged by the other proxy, of a session; */
	KEEP_MAX = 32 << 20,
	/* and by all, as a part in so many of --memory. */
	KEPT_SHARE = 2,
	/* When no more than a quarter of that is left: who has most, for so long, ends. */
	KEPT_LATE_SECONDS = 2,
	/* A session without pipes is kept so long, and so many of an address; */
	RESUME_SECONDS = 120,
	ALONE_EACH = 4,
	/* LP takes no more connections for it after */
	ALONE_SECONDS = 10,

	/* Flows of datagrams of a session, and bytes that wait in all their queues. */
	FLOWS_MAX = 1024,
	FLOWS_MEMORY = 16 << 20,
	/* Where there are few places for connections, LP opens a part in so many of them. */
	FLOWS_SHARE = 4,
	/* RP takes so many times as many: FINs of those that LP ended may come behind OPENs. */
	FLOWS_LEAVING = 2,

	/* How long an orderly end waits for the last acknowledgement. */
	LINGER_MS = 1000,

	/* Half closed for so long, an application is asked whether it is there. */
	HALF_CLOSED_MS = 1000,

	/*
	 * An application that ended first hears of an orderly end only after so
	 * long without anything that came for it behind its end: the first where
	 * it may be waiting for an answer, the other where it had one.
	 */
	UNANSWERED_MS = 1000,
	ANSWERED_MS = 200,
};

#endif
