/* SPDX-License-Identifier: MIT */
/*
 * A modelled way through a network: loss by chance, one bottleneck with a
 * queue that drops at its end, whose rate may follow a trace, and jitter.
 */
#ifndef TM3_TEST_NETWORK_H
#define TM3_TEST_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "params.h"
#include "random.h"

enum { NETWORK_MTU = 1500 };

struct network {
	const struct model_params *is;
	struct random *chance;
	bool bad;		/* within a burst of losses */
	struct network *through;	/* whose bottleneck is in the way; NULL: one of its own, */
	int64_t busy_until;	/* which is at work until then */
	int64_t arrives, returns;	/* the one before */
	int64_t filled_at;	/* a segment that pipes sent arrived, the last time */

	/* seen */
	uint64_t dropped;	/* by the queue */
	int64_t longest;	/* queue, ns */
};

void network_init(struct network *n, const struct model_params *is,
		  struct random *chance);

/* How long a handshake takes: nothing else is on its way. */
int64_t network_handshake(struct network *n);

/* When what is sent @now arrives, or -1: it is lost. */
int64_t network_send(struct network *n, int64_t now, size_t len);

/* The same of an acknowledgement, which meets no queue. */
int64_t network_back(struct network *n, int64_t now);

int64_t network_queue(const struct network *n, int64_t now);	/* ns */

#endif
