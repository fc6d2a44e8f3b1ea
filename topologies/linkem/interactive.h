/* SPDX-License-Identifier: MIT */
/*
 * Which packets are interactive, and so go ahead of bulk where the host has a
 * queue for each:
 *
 *   none
 *   dscp:N[-M]    with such a DSCP
 *   port:N[-M]    of TCP or UDP, from or to such a port; of a packet in
 *                 fragments only the first one has ports
 *
 * and any number of these with commas between.
 */
#ifndef LINKEM_INTERACTIVE_H
#define LINKEM_INTERACTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { INTERACTIVE_PORTS_MAX = 16, DSCP_MAX = 63 };

struct interactive {
	uint64_t dscp;		/* a bit for each */
	struct {
		uint16_t first, last;
	} port[INTERACTIVE_PORTS_MAX];
	int ports;
};

int interactive_parse(struct interactive *i, const char *text, char *why,
		      size_t why_len);
void interactive_print(const struct interactive *i, FILE *out);

bool interactive_has(const struct interactive *i, const uint8_t *frame,
		     size_t len);

#endif
