/* SPDX-License-Identifier: MIT */
/*
 * The delay line: packets under way, earliest first; those due at the same
 * moment leave in the order they came. A binary heap, so that jitter and
 * reordering cost no more than a constant delay.
 */
#ifndef LINKEM_LINE_H
#define LINKEM_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "packet.h"

struct line {
	struct packet **heap;	/* owned */
	size_t n, room;
	uint64_t order;
};

void line_fini(struct line *line);

/* By its `due`. 0 or -ENOMEM. */
int line_push(struct line *line, struct packet *p);

/* The earliest, or NULL; it stays. */
struct packet *line_peek(const struct line *line);
struct packet *line_pop(struct line *line);

#endif
