/* SPDX-License-Identifier: MIT */
/*
 * A run that was sent and is kept: for keeping, which has them, duplicate, which copies them,
 * and twins, which chooses some to go over another path as well.
 */
#ifndef TM3_SENT_RUN_H
#define TM3_SENT_RUN_H

#include <stdint.h>

#include "../base/list.h"
#include "../extension/kept.h"

struct run;

struct sent_run {
	struct kept_item item;
	struct run *run;
	int64_t sent_at;
	uint64_t end;		/* in the pipe's stream */
	uint64_t counted;	/* the count of its last message there */
	int64_t arrives_at;	/* as its path was forecast, where twins are made */
	uint32_t incarnation;	/* of the pipe */
	uint8_t pipe;		/* its index */
	uint8_t paths;		/* so many links: */
	struct list due[];	/* by path: of what may go there as well, as it was sent */
};

static inline struct sent_run *sent_run_of(struct kept_item *item)
{
	return container_of(item, struct sent_run, item);
}

#endif
