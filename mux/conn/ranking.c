/* SPDX-License-Identifier: MIT */
#include "ranking.h"

#include "reorder.h"

/* So many are compared; with more, any of the class will do. */
enum { COMPARED = 64 };

void ranking_init(struct ranking *h)
{
	int i;

	for (i = 0; i < RANKING_CLASSES; i++)
		list_init(&h->class[i]);
}

/* 0: nothing waits; n: from 2^(n-1) bytes on. */
static uint8_t class_of(size_t bytes)
{
	uint8_t n = 0;

	while (bytes && n < RANKING_CLASSES - 1) {
		bytes >>= 1;
		n++;
	}
	return n;
}

void ranking_update(struct ranking *h, struct reorder *q)
{
	struct reorder_waiting *w = q->waiting;
	uint8_t class = w ? class_of(w->bytes) : 0;

	if (!w || class == w->class)
		return;
	w->class = class;
	list_move_tail(&h->class[class], &w->ranked);
}

void ranking_each(struct ranking *h,
		  void (*look)(void *arg, struct reorder *q), void *arg)
{
	struct list *pos, *tmp;
	int i;

	for (i = 1; i < RANKING_CLASSES; i++) {
		list_each(pos, tmp, &h->class[i])
			look(arg, list_entry(pos, struct reorder_waiting, ranked)->of);
	}
}

static struct reorder *largest_of(struct list *class)
{
	struct reorder_waiting *most = NULL;
	struct list *pos, *tmp;
	int left = COMPARED;

	list_each(pos, tmp, class) {
		struct reorder_waiting *w =
			list_entry(pos, struct reorder_waiting, ranked);

		if (!most || w->bytes > most->bytes)
			most = w;
		if (!--left)
			break;
	}
	return most->of;
}

struct reorder *ranking_largest(struct ranking *h)
{
	int i;

	for (i = RANKING_CLASSES - 1; i > 0; i--) {
		if (!list_empty(&h->class[i]))
			return largest_of(&h->class[i]);
	}
	return NULL;
}
