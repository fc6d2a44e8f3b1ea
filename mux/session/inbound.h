/* SPDX-License-Identifier: MIT */
/*
 * What a session knows of the way in: bytes that came and did not reach their
 * application yet, out of order or in order, and whether pipes are read.
 */
#ifndef TM3_INBOUND_H
#define TM3_INBOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/loop.h"
#include "../conn/ranking.h"
#include "../conn/stall.h"
#include "../wire/wire.h"
#include "delivery.h"
#include "reader.h"

struct conn;
struct pipe;
struct session;

struct inbound {
	struct delivery delivery;
	size_t early;		/* out of order, memory */
	int64_t said_at;	/* that there are data without their SYN */
	struct ranking ranking;	/* by size */
	size_t queued;		/* in order, not taken by applications, */
	uint64_t taken;		/* and taken by them, in all */
	unsigned int full_queues;	/* connections above QUEUE_MAX */
	bool full;		/* all of them above QUEUE_MAX_SESSION */
	bool paused;
	int64_t paused_at;
	int64_t paused_ns;	/* in all, before */
	struct stall stall;	/* what all of them together delay */
	struct timer pause_timer;
	struct timer gap_timer;	/* runs while anything is early */
	struct reader reader;
	uint64_t messages;	/* that this round has brought */
	struct task read;
};

void inbound_start(struct session *s);
void inbound_stop(struct session *s);

/* As reader asks. */
bool inbound_expects(struct session *s, unsigned int pipe,
		     const struct wire_head *head, uint32_t *number);

bool inbound_message(struct session *s, struct pipe *p,
		     const struct wire_msg *msg, uint64_t offset);
/* Is there a place for @c, which is new? If not it is turned away, and to be refused. */
bool inbound_takes(struct session *s, struct conn *c);
/* So many bytes more (or less), in order or not: whether that is too much. */
void inbound_charge(struct session *s, int64_t bytes);
/* The same of @q, whose early messages took @before bytes of memory until now. */
void inbound_early(struct session *s, struct reorder *q, size_t before);

#endif
