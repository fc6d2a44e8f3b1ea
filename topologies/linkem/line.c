/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool before(const struct packet *a, const struct packet *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

void line_fini(struct line *line)
{
	free(line->heap);
	memset(line, 0, sizeof(*line));
}

static int make_room(struct line *line)
{
	size_t room = line->room ? 2 * line->room : 64;
	struct packet **grown;

	if (line->n < line->room)
		return 0;
	grown = realloc(line->heap, room * sizeof(struct packet *));
	if (!grown)
		return -ENOMEM;
	line->heap = grown;
	line->room = room;
	return 0;
}

int line_push(struct line *line, struct packet *p)
{
	size_t at = line->n;
	int ret = make_room(line);

	if (ret)
		return ret;
	p->order = line->order++;
	line->n++;
	while (at) {
		size_t parent = (at - 1) / 2;

		if (!before(p, line->heap[parent]))
			break;
		line->heap[at] = line->heap[parent];
		at = parent;
	}
	line->heap[at] = p;
	return 0;
}

struct packet *line_peek(const struct line *line)
{
	return line->n ? line->heap[0] : NULL;
}

struct packet *line_pop(struct line *line)
{
	struct packet *top = line_peek(line);
	struct packet *last;
	size_t at = 0;

	if (!top)
		return NULL;
	last = line->heap[--line->n];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= line->n)
			break;
		if (child + 1 < line->n &&
		    before(line->heap[child + 1], line->heap[child]))
			child++;
		if (!before(line->heap[child], last))
			break;
		line->heap[at] = line->heap[child];
		at = child;
	}
	line->heap[at] = last;
	return top;
}
