/* SPDX-License-Identifier: MIT */
#include "holders.h"

#include "reorder.h"

/* So many are compared; with more, any of the class will do. */
enum { COMPARED = 64 };

void holders_init(struct holders *h)
{
	int i;

	for (i = 0; i < HOLDERS_CLASSES; i++)
		list_init(&h->class[i]);
}

/* 0: holds nothing; n: from 2^(n-1) bytes on. */
static uint8_t class_of(size_t bytes)
{
	uint8_t n = 0;

	while (bytes && n < HOLDERS_CLASSES - 1) {
		bytes >>= 1;
		n++;
	}
	return n;
}

void holders_update(struct holders *h, struct reorder *q)
{
	struct reorder_waiting *w = q->waiting;
	uint8_t class = w ? class_of(w->bytes) : 0;

	if (!w || class == w->class)
		return;
	w->class = class;
	list_move_tail(&h->class[class], &w->holds);
}

void holders_each(struct holders *h,
		  void (*look)(void *arg, struct reorder *q), void *arg)
{
	struct list *pos, *tmp;
	int i;

	for (i = 1; i < HOLDERS_CLASSES; i++) {
		list_each(pos, tmp, &h->class[i])
			look(arg, list_entry(pos, struct reorder_waiting, holds)->of);
	}
}

static struct reorder *largest_of(struct list *class)
{
	struct reorder_waiting *most = NULL;
	struct list *pos, *tmp;
	int left = COMPARED;

	list_each(pos, tmp, class) {
		struct reorder_waiting *w =
			list_entry(pos, struct reorder_waiting, holds);

		if (!most || w->bytes > most->bytes)
			most = w;
		if (!--left)
			break;
	}
	return most->of;
}

struct reorder *holders_largest(struct holders *h)
{
	int i;

	for (i = HOLDERS_CLASSES - 1; i > 0; i--) {
		if (!list_empty(&h->class[i]))
			return largest_of(&h->class[i]);
	}
	return NULL;
}
