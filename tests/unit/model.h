/* SPDX-License-Identifier: MIT */
/*
 * Pipes over a last mile, in virtual time and without a socket: modelled TCP
 * connections (tcp) over a modelled network, or two, with other people's beside them
 * (rival), and a process that may be late. What decides is the engine's own:
 * scheduler, pipes' allowance, aggregate.
 */
#ifndef TM3_TEST_MODEL_H
#define TM3_TEST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "mux/base/hist.h"
#include "mux/conn/conn.h"
#include "mux/path/paths.h"
#include "mux/pipe/pipe.h"
#include "mux/sched/next.h"
#include "mux/sched/sched.h"
#include "mux/sched/thin.h"
#include "network.h"
#include "params.h"
#include "rival.h"
#include "tcp.h"

enum {
	MODEL_MSS = TCP_MSS,
	MODEL_CONNS = 64,
	MODEL_STAMPS = 4096,
};

struct model_event;

struct model_pipe {
	struct pipe pipe;
	struct model *model;
	struct tcp tcp;
	struct model_event *message;	/* by number: a ring, */
	uint64_t room;			/* of so many */
};

/* A message of a connection, by its number there. */
struct model_message {
	int64_t sent_at, arrived_at;	/* or 0 */
};

struct model_conn {
	struct conn conn;
	struct model_message *message;	/* a ring, */
	uint64_t room;			/* of so many */
	uint64_t messages, expects;	/* sent; all before it have arrived */
	/* since model_forget(): for those before it, and from being sent until then */
	struct hist waited, took;
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
	struct paths paths;
	struct settings settings;
	struct model_pipe pipe[PIPES_MAX];
	struct model_conn conn[MODEL_CONNS];
	unsigned int offered;	/* from this one on they never had anything to send */

	struct clock clock;
	struct network network, second;
	struct rivals rivals;
	bool waking;		/* the process, soon */
	unsigned int stamps;	/* that it has not read yet */
	struct model_event *stamp;
	bool waits;		/* a look is under way */
	uint64_t written, again;	/* bytes, and of them those that --reinject sent */
	bool looks_again;	/* for what goes again a look is under way */
	struct random *chance;

	/* seen */
	uint64_t arrived;	/* bytes, since model_forget() */
	size_t overshoot;	/* beyond the limit, at most */
	size_t unfair;		/* between two that always had something */
};

void model_init(struct model *model, const struct model_params *params,
	       struct random *chance);
void model_fini(struct model *model);

/* Give connection @i @bytes more (UINT64_MAX: for ever). */
void model_offer(struct model *model, unsigned int i, uint64_t bytes);

/* So many downloads of other people, or one. */
void model_rivals(struct model *model, unsigned int n, enum tcp_cc cc);
void model_rival(struct model *model, bool on);

void model_run(struct model *model, int64_t ns);

/* Begin to look anew. */
void model_forget(struct model *model);

int64_t model_queue(const struct model *model);	/* at the moment, ns */

#endif
