/* SPDX-License-Identifier: MIT */
/*
 * Pipes over a last mile, in virtual time and without a socket: windows that
 * grow and halve as Reno's, one bottleneck with a queue that drops at its end,
 * acknowledgements that may be delayed as receivers do. What decides is the
 * engine's own: scheduler, pipes' allowance, aggregate.
 */
#ifndef TM3_TEST_PATH_H
#define TM3_TEST_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "mux/conn/conn.h"
#include "mux/path/aggregate.h"
#include "mux/pipe/pipe.h"
#include "mux/sched/sched.h"

enum {
	PATH_MSS = 1448,
	PATH_CONNS = 64,
	PATH_WINDOW = 10,	/* segments, to begin with */
};

struct path_params {
	double rate;		/* bytes a second */
	int64_t rtt;		/* ns, without any queue */
	size_t queue;		/* bytes that may wait */
	unsigned int pipes;
	bool delayed_acks;	/* every other one, or after 40 ms */
	double loss;		/* share, by chance */
	const struct pipe_policy *policy;
	enum aggregate_mode mode;
};

struct path_event;

struct path_pipe {
	struct pipe pipe;
	double cwnd, ssthresh;	/* segments */
	double srtt;		/* ns */
	int64_t halved_at;
	struct path_event *waiting;	/* in its socket: a ring */
	unsigned int first, count;
	struct path_event *owed;	/* arrived, its acknowledgement delayed */
	uint64_t owed_number;
};

struct path_conn {
	struct conn conn;
	uint64_t backlog;	/* bytes, or UINT64_MAX */
	uint64_t sent, arrived;	/* bytes */
	uint64_t lately;	/* sent since path_forget() */
	int64_t served_at;	/* or became ready */
	int64_t longest_wait;	/* for its turn, since path_forget() */
	int64_t done_at;	/* all that was offered has arrived */
};

struct path {
	struct path_params is;
	int64_t now;
	struct sched sched;
	struct aggregate aggregate;
	struct settings settings;
	struct path_pipe pipe[PIPES_MAX];
	struct path_conn conn[PATH_CONNS];

	int64_t busy_until;	/* the bottleneck */
	struct path_event *heap;
	unsigned int events, room;
	uint64_t order;		/* of events at the same time */
	uint64_t tx_total, acked;	/* bytes */
	struct {		/* a connection that is not ours */
		double cwnd;	/* segments */
		unsigned int in_flight;
		uint64_t arrived;	/* bytes */
		int64_t halved_at;
		bool on;
	} rival;
	bool refused;		/* the engine waits for an acknowledgement */
	struct random *chance;

	/* seen */
	uint64_t arrived, dropped;	/* bytes, segments */
	int64_t longest_queue;	/* ns, since path_forget() */
	size_t overshoot;	/* beyond the limit, at most */
	size_t unfair;		/* between two that always had something */
};

void path_init(struct path *path, const struct path_params *params,
	       struct random *chance);
void path_fini(struct path *path);

/* Give connection @i @bytes more (UINT64_MAX: for ever). */
void path_offer(struct path *path, unsigned int i, uint64_t bytes);

void path_rival(struct path *path, bool on);

void path_run(struct path *path, int64_t ns);

/* Begin to look anew. */
void path_forget(struct path *path);

int64_t path_queue(const struct path *path);	/* at the moment, ns */

#endif
