/* SPDX-License-Identifier: MIT */
/*
 * The datagrams of a flow that wait for a pipe, as messages; and of all flows of a
 * session together: which may go where, in turns, and what goes when memory is short.
 *
 * Who opened a flow may send before SYNACK has come. A DATAGRAM that overtakes the
 * OPEN is nobody's. So until then datagrams follow the OPEN, on its pipe, as long
 * as that is there.
 */
#ifndef TM3_FLOW_QUEUE_H
#define TM3_FLOW_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/list.h"
#include "../extension/datagrams.h"

struct conn;
struct run;
struct pipe;
struct session;
struct view;

struct flow_queue {
	struct conn *conn;	/* the flow's */
	struct datagram_queue waiting;
	struct list turn;	/* in extended.flows while something waits */
};

void flow_queue_init(struct flow_queue *q, struct conn *c);
/* What waits is dropped. */
void flow_queue_empty(struct flow_queue *q);

/* There is too much of a session's already: what comes is dropped, and is counted here. */
bool flow_queues_are_full(struct session *s);
/* @message is copied. It may be dropped now or later, and is counted then. False: now. */
bool flow_queue_put(struct flow_queue *q, const uint8_t *message, size_t size);

/* As dialect.look_kept (its part), .datagrams and .shed_datagrams. */
void flow_queues_look(struct session *s, struct view *view);
struct run *flow_queues_frame(struct session *s, struct pipe *p, size_t bytes);
/* Those of @bytes go, or all: of flows that have many. */
void flow_queues_shed(struct session *s, size_t bytes);

#endif
