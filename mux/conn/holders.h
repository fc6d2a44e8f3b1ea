/* SPDX-License-Identifier: MIT */
/*
 * Who holds how much out of order, so that the largest holder is found without
 * asking everybody: one list per power of two of the bytes held.
 */
#ifndef TM3_HOLDERS_H
#define TM3_HOLDERS_H

#include "../base/list.h"

enum { HOLDERS_CLASSES = 32 };

struct reorder;

struct holders {
	struct list class[HOLDERS_CLASSES];
};

void holders_init(struct holders *h);

/* To be called when more waits in @q, or less. */
void holders_update(struct holders *h, struct reorder *q);

/* All that hold something; @look may make the one it is given hold nothing. */
void holders_each(struct holders *h,
		  void (*look)(void *arg, struct reorder *q), void *arg);

/*
 * The queue that holds most, or NULL. Among very many of its class it is
 * one that holds at least half as much as the largest.
 */
struct reorder *holders_largest(struct holders *h);

#endif
