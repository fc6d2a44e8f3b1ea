/* SPDX-License-Identifier: MIT */
/*
 * Who has how much memory charged, for what waits for applications and the like, and how
 * much it may be: a tree. Its leaves are sessions; above them are what they have in
 * common, such as an address, and at the root the process.
 *
 * Where more is charged than may be, it goes down the tree to who has most, and that leaf
 * sheds what it can, until an eighth of the limit is free. So whoever has little is not hit
 * by what others do.
 *
 * No sockets, no clock.
 */
#ifndef TM3_HOARD_H
#define TM3_HOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/list.h"

struct hoard {
	struct hoard *above;	/* NULL: the root */
	struct list member;	/* of those below it */
	struct list below;
	size_t bytes;
	size_t max;		/* of a leaf: not looked at */
	/*
	 * Of a leaf: gives up @bytes, or less if it has no more. It says so with
	 * hoard_add(), before it returns.
	 */
	void (*shed)(struct hoard *leaf, size_t bytes);
};

void hoard_init(struct hoard *h, struct hoard *above, size_t max);

/* Those below it are below the one above it from now on. */
void hoard_fini(struct hoard *h);

/* @h, with all that is charged to it, is below @above from now on. */
void hoard_move(struct hoard *h, struct hoard *above);

/* So much more is charged to a leaf (or less). Returns whether that is too much somewhere. */
bool hoard_add(struct hoard *leaf, int64_t bytes);

/* Whether it is: then what can be missed had better not come. */
bool hoard_exceeded(const struct hoard *leaf);

/* Has leaves shed until nobody has too much. @root: see above. */
void hoard_relieve(struct hoard *root);

#endif
