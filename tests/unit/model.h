/* SPDX-License-Identifier: MIT */
/*
 * Pipes over a last mile, in virtual time and without a socket: windows that
 * grow and halve as Reno's, one bottleneck with a queue that drops at its end,
 * acknowledgements that may be delayed as receivers do. What decides is the
 * engine's own: scheduler, pipes' allowance, aggregate.
 */
#ifndef TM3_TEST_MODEL_H
#define TM3_TEST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "mux/conn/conn.h"
#include "mux/path/path.h"
#include "mux/pipe/pipe.h"
#include "mux/sched/next.h"
#include "mux/sched/sched.h"
#include "mux/sched/thin.h"

enum {
	MODEL_MSS = 1448,
	MODEL_CONNS = 64,
	MODEL_WINDOW = 10,	/* segments, to begin with */
};

struct model_params {
	double rate;		/* bytes a second */
	int64_t rtt;		/* ns, without any queue */
	size_t queue;		/* bytes that may wait */
	unsigned int pipes;
	bool delayed_acks;	/* every other one, or after 40 ms */
	double loss;		/* share, by chance */
	const struct pipe_policy *policy;
	enum aggregate_mode mode;
};

struct model_event;

struct model_pipe {
	struct pipe pipe;
	double cwnd, ssthresh;	/* segments */
	double srtt;		/* ns */
	int64_t halved_at;
	struct model_event *waiting;	/* in its socket: a ring */
	unsigned int first, count;
	struct model_event *owed;	/* arrived, its acknowledgement delayed */
	uint64_t owed_number;
};

struct model_conn {
	struct conn conn;
	uint64_t backlog;	/* bytes, or UINT64_MAX */
	uint64_t sent, arrived;	/* bytes */
	uint64_t lately;	/* sent since model_forget() */
	int64_t served_at;	/* or became ready */
	int64_t longest_wait;	/* for its turn, since model_forget() */
	int64_t done_at;	/* all that was offered has arrived */
};

struct model {
	struct model_params is;
	int64_t now;
	struct sched sched;
	struct path path;
	struct settings settings;
	struct model_pipe pipe[PIPES_MAX];
	struct model_conn conn[MODEL_CONNS];

	int64_t busy_until;	/* the bottleneck */
	struct model_event *heap;
	unsigned int events, room;
	uint64_t order;		/* of events at the same time */
	struct {		/* a connection that is not ours */
		double cwnd;	/* segments */
		unsigned int in_flight;
		uint64_t arrived;	/* bytes */
		int64_t halved_at;
		bool on;
	} rival;
	bool waits;		/* a LOOK is under way */
	struct random *chance;

	/* seen */
	uint64_t arrived, dropped;	/* bytes, segments */
	int64_t longest_queue;	/* ns, since model_forget() */
	size_t overshoot;	/* beyond the limit, at most */
	size_t unfair;		/* between two that always had something */
};

void model_init(struct model *model, const struct model_params *params,
	       struct random *chance);
void model_fini(struct model *model);

/* Give connection @i @bytes more (UINT64_MAX: for ever). */
void model_offer(struct model *model, unsigned int i, uint64_t bytes);

void model_rival(struct model *model, bool on);

void model_run(struct model *model, int64_t ns);

/* Begin to look anew. */
void model_forget(struct model *model);

int64_t model_queue(const struct model *model);	/* at the moment, ns */

#endif
