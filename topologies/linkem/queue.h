/* SPDX-License-Identifier: MIT */
/*
 * The packets that wait for the link, first in, first out. The one that is
 * being sent is no longer in it. A packet that would lift the queue over a
 * limit is refused (tail drop), except by an empty queue, which takes any.
 */
#ifndef LINKEM_QUEUE_H
#define LINKEM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

struct queue {
	struct packet *head, *tail;
	uint64_t packets, bytes;
	uint64_t packets_max, bytes_max;	/* limits; 0 = none */
	uint64_t packets_top, bytes_top;	/* the most there ever were */
};

/* False if the packet does not fit; it stays the caller's then. */
bool queue_push(struct queue *q, struct packet *p);

/* The oldest, or NULL. */
struct packet *queue_pop(struct queue *q);

/* What is in @before goes in front of @q, whatever the limits. */
void queue_prepend(struct queue *q, struct queue *before);

#endif
