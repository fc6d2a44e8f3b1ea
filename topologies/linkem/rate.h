/* SPDX-License-Identifier: MIT */
/*
 * When a link of a constant rate is done with a packet. Fractions of a
 * nanosecond are carried over, so the rate is exact over any number of packets
 * that follow each other.
 */
#ifndef LINKEM_RATE_H
#define LINKEM_RATE_H

#include <stdint.h>

struct rate {
	uint64_t bit_per_s;
	int64_t free_at;	/* when the last packet's last bit is sent */
	uint64_t rest;		/* of a nanosecond, in units of 1 / rate */
};

/* Sends @bytes from @start on, no earlier than free_at; when they are sent. */
int64_t rate_send(struct rate *r, int64_t start, uint32_t bytes);

#endif
