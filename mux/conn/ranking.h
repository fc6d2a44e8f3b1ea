/* SPDX-License-Identifier: MIT */
/*
 * Reorder queues by how much waits in them, so that the largest is found without
 * asking everybody: one list per power of two of their bytes.
 */
#ifndef TM3_RANKING_H
#define TM3_RANKING_H

#include "../base/list.h"

enum { RANKING_CLASSES = 32 };

struct reorder;

struct ranking {
	struct list class[RANKING_CLASSES];
};

void ranking_init(struct ranking *h);

/* To be called when more waits in @q, or less. */
void ranking_update(struct ranking *h, struct reorder *q);

/* All in which something waits; @look may empty the one it is given. */
void ranking_each(struct ranking *h,
		  void (*look)(void *arg, struct reorder *q), void *arg);

/*
 * The queue that has most, or NULL. Among very many of its class it is
 * one that has at least half as much as the largest.
 */
struct reorder *ranking_largest(struct ranking *h);

#endif
