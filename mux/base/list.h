/* SPDX-License-Identifier: MIT */
/*
 * Intrusive circular lists, and the way from a member back to its owner.
 */
#ifndef TM3_LIST_H
#define TM3_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

/* Leaves @l as an empty list of its own, so that it may be deleted twice. */
static inline void list_del(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

static inline void list_move_tail(struct list *head, struct list *l)
{
	list_del(l);
	list_add_tail(head, l);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first(head, type, member) \
	list_entry((head)->next, type, member)

/* The body may delete the current entry. */
#define list_each(pos, tmp, head) \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); \
	     (pos) = (tmp), (tmp) = (pos)->next)

#endif
