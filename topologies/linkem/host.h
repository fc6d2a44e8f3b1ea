/* SPDX-License-Identifier: MIT */
/*
 * The queue before the link; of a radio link the host's own, above the device.
 *
 *   fifo    one queue
 *   codel   the same, and packets that waited are dropped at its head
 *   prio    interactive packets have a queue of their own, which goes first;
 *           each queue has all of the room, as bands of Linux's prio have
 */
#ifndef LINKEM_HOST_H
#define LINKEM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "codel.h"
#include "queue.h"

enum host_order { HOST_FIFO, HOST_PRIO, HOST_CODEL };

struct host {
	int order;		/* enum host_order */
	struct queue interactive, bulk;
	struct codel codel;
};

/* Limits of each queue; 0 = none. */
void host_limit(struct host *h, uint64_t bytes, uint64_t packets);

/* False if the packet does not fit; it stays the caller's then. */
bool host_push(struct host *h, struct packet *p, bool is_interactive);

/* The one that comes next, or NULL if there is none. */
const struct packet *host_peek(const struct host *h);

/* The next to send at @now, or NULL. */
struct packet *host_pop(struct host *h, int64_t now,
			const struct codel_drop *drop);

uint64_t host_packets(const struct host *h);
uint64_t host_bytes(const struct host *h);

/* Makes one queue of all, with @before in front of it. */
void host_join(struct host *h, struct queue *before);

#endif
