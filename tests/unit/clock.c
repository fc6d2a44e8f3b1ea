/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

static bool before(const struct clock_event *a, const struct clock_event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void clock_fini(struct clock *clock)
{
	free(clock->heap);
}

void clock_at(struct clock *clock, struct clock_event e)
{
	unsigned int i;

	if (clock->events == clock->room) {
		clock->room = clock->room ? 2 * clock->room : 256;
		clock->heap = realloc(clock->heap,
				      clock->room * sizeof(*clock->heap));
		assert(clock->heap);
	}
	e.order = clock->order++;
	i = clock->events++;
	for (; i && before(&e, &clock->heap[(i - 1) / 2]); i = (i - 1) / 2)
		clock->heap[i] = clock->heap[(i - 1) / 2];
	clock->heap[i] = e;
}

static struct clock_event pop(struct clock *clock)
{
	struct clock_event first = clock->heap[0];
	struct clock_event last = clock->heap[--clock->events];
	unsigned int i = 0, c;

	while ((c = 2 * i + 1) < clock->events) {
		if (c + 1 < clock->events &&
		    before(&clock->heap[c + 1], &clock->heap[c]))
			c++;
		if (before(&last, &clock->heap[c]))
			break;
		clock->heap[i] = clock->heap[c];
		i = c;
	}
	clock->heap[i] = last;
	return first;
}

int clock_step(struct clock *clock, int64_t until)
{
	struct clock_event e;

	if (!clock->events || clock->heap[0].at > until)
		return 0;
	e = pop(clock);
	clock->now = e.at;
	e.happen(e.who, &e);
	return 1;
}
