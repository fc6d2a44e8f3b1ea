// SPDX-License-Identifier: MIT
/* What was asked and is not answered, in a ring: a query whose place is taken again is given up. */
#include <stdlib.h>

#include "ramp.h"

enum { PLACES = 1 << 19 };

struct place {
	struct asked asked;
	bool open;
};

struct book {
	uint32_t left;
	struct place places[PLACES];
};

struct book *book_new(void)
{
	return calloc(1, sizeof(struct book));
}

void book_free(struct book *b)
{
	free(b);
}

void book_add(struct book *b, const struct asked *it)
{
	struct place *p = &b->places[it->number % PLACES];

	b->left += !p->open;
	*p = (struct place){ .asked = *it, .open = true };
}

bool book_take(struct book *b, uint32_t number, uint32_t client,
	       struct asked *it)
{
	struct place *p = &b->places[number % PLACES];

	if (!p->open || p->asked.number != number || p->asked.client != client)
		return false;
	p->open = false;
	b->left--;
	*it = p->asked;
	return true;
}

uint32_t book_left(const struct book *b)
{
	return b->left;
}

void book_forget(struct book *b)
{
	uint32_t i;

	for (i = 0; i < PLACES && b->left; i++) {
		b->left -= b->places[i].open;
		b->places[i].open = false;
	}
}
