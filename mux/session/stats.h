/* SPDX-License-Identifier: MIT */
/*
 * What a proxy tells of itself as JSON lines: a sample of each pipe per
 * interval, a record of each connection at its end. docs/statistics.md lists
 * the fields.
 */
#ifndef TM3_STATS_H
#define TM3_STATS_H

#include <stddef.h>
#include <stdint.h>

struct settings;
struct aggregate;
struct conn;
struct log;
struct losses;
struct pipe;
struct refusals;
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

/* All take NULL for "no statistics". */
void stats_session(struct stats *st, unsigned int session, const char *event,
		   const char *peer, const char *reason);
void stats_pipe(struct stats *st, unsigned int session, const struct pipe *p,
		const char *state);
/* What the pipes hold together, @held bytes at the moment, and their limit. */
void stats_aggregate(struct stats *st, unsigned int session,
		     const struct aggregate *a, size_t held);
/* Of a mixed set of pipes: what is lost, and where traffic is therefore. */
void stats_losses(struct stats *st, unsigned int session,
		  const struct losses *l);
void stats_conn(struct stats *st, unsigned int session, const struct conn *c,
		int64_t now);

/* Counters of limits that were hit and things dropped. */
struct stats_counts {
	uint64_t duplicates, late, early_dropped, reorder_limit,
		gap_limit, queue_limit, pauses, protocol;
	/*
	 * Of the extension: messages of its own that were dropped, and those of
	 * them that came too late to tell anything; messages that were sent again,
	 * and their bytes, headers included; and messages sent as
	 * copies because they were overdue.
	 */
	uint64_t dropped, stale, again, again_bytes, copies;
	/*
	 * Datagrams of flows that were sent, that came, and that were dropped:
	 * they waited too long, too many waited, they were too large for a message,
	 * belonged to no flow, may not go there, or their socket did not take them.
	 */
	struct {
		uint64_t sent, received, stale, crowded, large, stray, denied,
			unsent;
	} datagrams;
};

/* How often each limit of the process was met so far. */
void stats_limits(struct stats *st, const struct refusals *refusals);

void stats_counters(struct stats *st, unsigned int session,
		    const struct stats_counts *counts);

#endif
