/* SPDX-License-Identifier: MIT */
/*
 * CoDel as RFC 8289 writes it (section 5): packets that waited are dropped at
 * the head once the wait has stayed above `target` for an `interval`, ever
 * more often until it falls below.
 */
#ifndef LINKEM_CODEL_H
#define LINKEM_CODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "queue.h"

struct codel {
	int64_t target, interval;	/* ns */
	uint32_t mtu;			/* no drop with less than this queued */
	int64_t first_above;		/* 0: the wait is below target */
	int64_t drop_next;
	uint32_t count, last_count;
	bool dropping;
};

/* Whoever owns the packets takes those that are dropped. */
struct codel_drop {
	void (*drop)(void *arg, struct packet *p);
	void *arg;
};

/* The next packet to send at @now, or NULL. */
struct packet *codel_pop(struct codel *c, struct queue *q, int64_t now,
			 const struct codel_drop *drop);

#endif
