/* SPDX-License-Identifier: MIT */
/*
 * Pipes as their reader sees them, without a socket: each is a queue of
 * messages, the first of which have come and wait to be read while the rest are
 * in the network. Which pipe is read next, and how much of it, says the
 * engine's own code, and what is early is held by its own queues. What comes
 * out is checked.
 */
#ifndef TM3_TEST_INFLOW_H
#define TM3_TEST_INFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/conn/reorder.h"
#include "mux/session/reader.h"
#include "random.h"

enum {
	INFLOW_CONNS = 50,
	INFLOW_MESSAGES = 4000,	/* of one, at most */
	INFLOW_ROUND = 1 << 20,	/* bytes, as a session reads them */
};

struct inflow_message {
	uint16_t conn;
	uint32_t index;		/* number less the connection's first */
};

struct inflow_pipe {			/* a pipe */
	struct inflow_message *message;
	unsigned int sent, came, read;
	size_t had;		/* bytes of the one at `read` */
	bool stalled, trickles;
};

struct inflow_conn {
	struct reorder q;
	uint32_t first, sent, delivered;
	uint32_t lost;		/* that never comes, or UINT32_MAX */
	uint8_t *came;		/* and lies in its pipe or was read */
	bool reset;
};

struct inflow {
	struct random *r;
	struct reader reader;
	unsigned int pipes, conns;
	struct inflow_pipe pipe[PIPES_MAX];
	struct inflow_conn conn[INFLOW_CONNS];
	size_t held, most_held;		/* payload */
	struct reader_gap gap[READER_GAPS];	/* as they were last seen */
	bool rising;		/* as all senders do, but careless ones */
	bool all_came;		/* what was sent, always */
};

void inflow_init(struct inflow *w, struct random *r, unsigned int pipes,
		 unsigned int conns);
void inflow_fini(struct inflow *w);

/* The next message of @conn goes to @pipe; the last two change places. */
void inflow_put(struct inflow *w, unsigned int pipe, unsigned int conn);
void inflow_fall(struct inflow *w, unsigned int pipe);

/* Up to @n messages of @pipe come; or of all pipes, as each is in the mood. */
void inflow_come(struct inflow *w, unsigned int pipe, unsigned int n);
void inflow_carry(struct inflow *w, bool all);

/* Whatever comes for @conn is dropped from now on. */
void inflow_reset(struct inflow *w, unsigned int conn);

size_t inflow_unread(struct inflow *w, unsigned int pipe);
size_t inflow_read(struct inflow *w, unsigned int pipe, size_t most);
size_t inflow_round(struct inflow *w);	/* the bytes that were read */
bool inflow_is_read(const struct inflow *w);

/* All has come out that could. */
void inflow_check_end(const struct inflow *w);

#endif
