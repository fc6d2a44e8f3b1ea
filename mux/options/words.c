/* SPDX-License-Identifier: MIT */
#include "words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int words_add(struct words *w, const char *name, const char *value)
{
	struct word *more = realloc(w->word, (w->n + 1) * sizeof(*more));
	char *copy = value ? strdup(value) : NULL;

	if (more)
		w->word = more;
	if (!more || (value && !copy)) {
		free(copy);
		return -ENOMEM;
	}
	more[w->n++] = (struct word){ name, copy };
	return 0;
}

void words_fini(struct words *w)
{
	while (w->n)
		free(w->word[--w->n].value);
	free(w->word);
	w->word = NULL;
}

/* The @i-th or a later one that is about @name, or NULL; @i is behind it then. */
static const struct word *next(const struct words *w, unsigned int *i,
			       const char *name)
{
	while (*i < w->n) {
		const struct word *word = &w->word[(*i)++];

		if (!strcmp(word->name, name))
			return word;
	}
	return NULL;
}

static bool same_value(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool words_same(const struct words *a, const struct words *b, const char *name)
{
	unsigned int i = 0, j = 0;
	const struct word *x, *y;

	do {
		x = next(a, &i, name);
		y = next(b, &j, name);
		if (!x != !y || (x && !same_value(x->value, y->value)))
			return false;
	} while (x);
	return true;
}

int words_take(struct words *w, const struct words *from, const char *name)
{
	unsigned int i, kept = 0, at = 0;
	const struct word *word;

	for (i = 0; i < w->n; i++) {
		if (strcmp(w->word[i].name, name))
			w->word[kept++] = w->word[i];
		else
			free(w->word[i].value);
	}
	w->n = kept;
	while ((word = next(from, &at, name))) {
		if (words_add(w, name, word->value))
			return -ENOMEM;
	}
	return 0;
}
