/* SPDX-License-Identifier: MIT */
/*
 * What is to be sent again, in line: those first that went ahead of connections that take
 * turns, then the others, each kind in the order in which it was first sent, whatever pipe it went
 * on: where several pipes ended, what is missing first is spread over all of them. What is bound
 * to some paths waits for these and delays nothing of others.
 *
 * All zeros: nothing waits. Items are those of kept.h, whose `last` is their place in line here.
 */
#ifndef TM3_AGAIN_H
#define TM3_AGAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../settings/limits.h"

struct kept_item;

enum {
	AGAIN_KINDS = 2,	/* ahead, and by turns */
	AGAIN_SETS = 1 << PATHS_MAX,	/* of paths */
	AGAIN_LISTS = AGAIN_KINDS * AGAIN_SETS,
	AGAIN_WORD = 64,
};

struct again {
	struct again_list {
		struct kept_item *first, *last;
		struct kept_item *added;	/* the one added last; NULL: it was taken */
		size_t bytes;	/* of memory, as the items say */
	} list[AGAIN_LISTS];
	uint64_t used[AGAIN_LISTS / AGAIN_WORD];	/* bits: lists that are not empty */
};

/*
 * @order: its place. Items that are added by rising places take one walk along the line together.
 * @paths: bits, it goes over these alone; 0: over any.
 */
void again_add(struct again *a, struct kept_item *item, uint64_t order,
	       bool ahead, uint8_t paths);
/* The first that may go over path @number; or NULL. It stays. */
struct kept_item *again_first(const struct again *a, unsigned int number);
/* Takes the first of those that were added with this @ahead and these @paths. */
struct kept_item *again_take(struct again *a, bool ahead, uint8_t paths);
/*
 * The first item of the list behind @list, which is -1 at first and then that of the last
 * call. NULL: there are no more.
 */
struct kept_item *again_each(const struct again *a, int *list);
/* Takes out all items that @is true of; they are linked, in no order. */
struct kept_item *again_remove(struct again *a,
			       bool (*is)(const struct kept_item *item,
					  const void *arg),
			       const void *arg);
bool again_is_empty(const struct again *a);
/* Bytes of memory of what may go over none of @paths: bits. */
size_t again_without(const struct again *a, uint8_t paths);

#endif
