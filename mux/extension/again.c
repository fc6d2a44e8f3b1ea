/* SPDX-License-Identifier: MIT */
#include "again.h"

#include "../settings/path_bits.h"
#include "kept.h"

static unsigned int list_of(bool ahead, uint8_t paths)
{
	return (ahead ? 0 : AGAIN_SETS) + paths % AGAIN_SETS;
}

/* One that @order is not before, as near to its place as is known without a walk; or NULL. */
static struct kept_item *near_before(const struct again_list *list,
				     uint64_t order)
{
	if (list->first && list->last->last <= order)
		return list->last;
	return list->added && list->added->last <= order ? list->added : NULL;
}

void again_add(struct again *a, struct kept_item *item, uint64_t order,
	       bool ahead, uint8_t paths)
{
	unsigned int at = list_of(ahead, paths);
	struct again_list *list = &a->list[at];
	struct kept_item *before = near_before(list, order);
	struct kept_item **next = before ? &before->next : &list->first;

	while (*next && (*next)->last <= order)
		next = &(*next)->next;
	if (!*next)
		list->last = item;
	item->last = order;
	item->next = *next;
	*next = item;
	list->added = item;
	list->bytes += item->bytes;
	a->used[at / AGAIN_WORD] |= UINT64_C(1) << at % AGAIN_WORD;
}

struct kept_item *again_take(struct again *a, bool ahead, uint8_t paths)
{
	unsigned int at = list_of(ahead, paths);
	struct kept_item *item = a->list[at].first;

	if (!item)
		return NULL;
	a->list[at].first = item->next;
	a->list[at].bytes -= item->bytes;
	if (a->list[at].added == item)
		a->list[at].added = NULL;
	if (!item->next)
		a->used[at / AGAIN_WORD] &= ~(UINT64_C(1) << at % AGAIN_WORD);
	return item;
}

/* Those of @list that @is true of go to @removed. */
static void remove_from(struct again_list *list,
			bool (*is)(const struct kept_item *item,
				   const void *arg),
			const void *arg, struct kept_item **removed)
{
	struct kept_item **at = &list->first, *item;

	list->last = list->added = NULL;
	while ((item = *at)) {
		if (!is(item, arg)) {
			list->last = item;
			at = &item->next;
			continue;
		}
		*at = item->next;
		list->bytes -= item->bytes;
		item->next = *removed;
		*removed = item;
	}
}

struct kept_item *again_remove(struct again *a,
			       bool (*is)(const struct kept_item *item,
					  const void *arg),
			       const void *arg)
{
	struct kept_item *removed = NULL;
	int list = -1;

	while (again_each(a, &list)) {
		unsigned int at = (unsigned int)list;

		remove_from(&a->list[at], is, arg, &removed);
		if (!a->list[at].first)
			a->used[at / AGAIN_WORD] &= ~(UINT64_C(1) << at % AGAIN_WORD);
	}
	return removed;
}

struct kept_item *again_each(const struct again *a, int *list)
{
	unsigned int at = (unsigned int)(*list + 1);

	while (at < AGAIN_LISTS) {
		uint64_t above = a->used[at / AGAIN_WORD] >> at % AGAIN_WORD;

		if (above & 1) {
			*list = (int)at;
			return a->list[at].first;
		}
		at = above ? at + 1 : (at / AGAIN_WORD + 1) * AGAIN_WORD;
	}
	return NULL;
}

struct kept_item *again_first(const struct again *a, unsigned int number)
{
	struct kept_item *best = NULL, *item;
	int list = -1, kind = 0;

	while ((item = again_each(a, &list))) {
		if (best && list / AGAIN_SETS != kind)
			break;
		if (!path_bits_have((unsigned int)list % AGAIN_SETS, number) ||
		    (best && best->last < item->last))
			continue;
		kind = list / AGAIN_SETS;
		best = item;
	}
	return best;
}

bool again_is_empty(const struct again *a)
{
	int list = -1;

	return !again_each(a, &list);
}

size_t again_without(const struct again *a, uint8_t paths)
{
	size_t bytes = 0;
	int list = -1;

	while (again_each(a, &list)) {
		unsigned int bound = (unsigned int)list % AGAIN_SETS;

		if (bound && !(bound & paths))
			bytes += a->list[list].bytes;
	}
	return bytes;
}
