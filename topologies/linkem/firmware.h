/* SPDX-License-Identifier: MIT */
/*
 * The queue in a radio's firmware, below the device: first in, first out, and
 * out of the host's reach. It takes packets while it holds less than its
 * room, so it never drops one; what finds it full stays with the host. Packets
 * are sent in parts, as grants allow.
 */
#ifndef LINKEM_FIRMWARE_H
#define LINKEM_FIRMWARE_H

#include <stdbool.h>
#include <stdint.h>

#include "queue.h"

struct firmware {
	struct queue queue;
	uint32_t head_sent;	/* bytes of the oldest packet */
	uint64_t room;		/* bytes */
};

bool firmware_is_full(const struct firmware *f);
void firmware_push(struct firmware *f, struct packet *p);

/* Not yet sent. */
uint64_t firmware_bytes(const struct firmware *f);

/*
 * Sends up to *@bytes, which are then fewer. A packet whose last byte was
 * sent, or NULL when bytes or packets have come to an end.
 */
struct packet *firmware_send(struct firmware *f, uint64_t *bytes);

#endif
