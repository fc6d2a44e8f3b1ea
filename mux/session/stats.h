/* SPDX-License-Identifier: MIT */
/*
 * What a proxy tells of itself as JSON lines: a sample of each pipe per
 * interval, a record of each connection at its end. docs/statistics.md lists
 * the fields.
 *
 * Any thread may tell; a line is written whole. Opening and closing are for one alone.
 */
#ifndef TM3_STATS_H
#define TM3_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings;
struct conn;
struct log;
struct losses;
struct path;
struct pipe;
struct queues;
struct stats;

/*
 * Makes the file @path anew, see line_file.h. It is never waited for: lines that
 * it does not take in time are dropped, and a record says how many. @log has the
 * program's name. Returns NULL and sets errno on failure.
 */
struct stats *stats_open(const char *path, struct log *log,
			 const struct settings *settings, unsigned int pipes);
void stats_close(struct stats *st);
/* The interval is another one from now on. NULL is allowed. */
void stats_set_interval(struct stats *st, const struct settings *settings);
void stats_flush(struct stats *st);

/* All take NULL for "no statistics". @path: its number. */
void stats_session(struct stats *st, unsigned int session, const char *event,
		   const char *peer, const char *reason);
void stats_pipe(struct stats *st, unsigned int session, unsigned int path,
		const struct pipe *p, const char *state);
/* One of several: its @name, or NULL, and whether it carries nothing now. */
void stats_path(struct stats *st, unsigned int session, unsigned int number,
		const struct path *path, const char *name, bool standby);
/* What the pipes of a path hold together at the moment, and their limit. */
void stats_aggregate(struct stats *st, unsigned int session,
		     unsigned int number, const struct path *path);
/* Of a mixed set of pipes: what is lost, and where traffic is therefore. */
void stats_losses(struct stats *st, unsigned int session, unsigned int path,
		  const struct losses *l);
/* What stands in its queues; @wait: what its sender waited for last. */
void stats_queues(struct stats *st, unsigned int session,
		  const struct queues *q, const char *wait);
void stats_conn(struct stats *st, unsigned int session, const struct conn *c,
		int64_t now);

/* Counters of limits that were hit and things dropped. */
struct stats_counts {
	uint64_t duplicates, late, early_dropped, reorder_limit,
		gap_limit, queue_limit, pauses, protocol;
	uint64_t unrecorded;	/* connections that have no record, see recording.c */
	/*
	 * Of the extension: messages of its own that were dropped, and those of
	 * them that came too late to tell anything; messages that were sent again,
	 * and their bytes, headers included; and messages sent as
	 * copies because they were overdue.
	 */
	uint64_t dropped, stale, again, again_bytes, copies;
	/* HINTs that were sent, that were heeded, and that were dropped: for nobody, or too large. */
	uint64_t hints_sent, hints_received, hints_dropped;
	/* Sent over a second path by --path-policy, or on a second pipe by --reinject, and their bytes. */
	uint64_t reinjected, reinjected_bytes;
	uint64_t too_big;	/* TOO_BIG: RP sent it, or LP took it */
	/*
	 * Datagrams of flows that were sent, that came, and that were dropped:
	 * they waited too long, too many waited, they were too large for a message,
	 * belonged to no flow, may not go there, must not be fragmented and would
	 * have to be, or their socket did not take them.
	 */
	struct {
		uint64_t sent, received, stale, crowded, large, stray, denied,
			narrow, unsent;
	} datagrams;
};

/* How often each limit of the process was met so far, by enum incident. */
void stats_limits(struct stats *st, const uint64_t *count);

void stats_counters(struct stats *st, unsigned int session,
		    const struct stats_counts *counts);

#endif
