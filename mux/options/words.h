/* SPDX-License-Identifier: MIT */
/*
 * What stood on a command line and in its files: options and arguments by name,
 * with their values, in order. Who reads them again compares: what changed, and is it
 * something that can change while the program runs?
 */
#ifndef TM3_WORDS_H
#define TM3_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct word {
	const char *name;	/* of a table of options, or of arguments */
	char *value;		/* or NULL */
};

struct words {
	struct word *word;
	unsigned int n;
};

/* @name must stay where it is. 0 or -ENOMEM. */
int words_add(struct words *w, const char *name, const char *value);
void words_fini(struct words *w);

/* Was @name given as often in both, with the same values in the same order? */
bool words_same(const struct words *a, const struct words *b,
		const char *name);

/* What @from says of @name is what @w says from now on. 0 or -ENOMEM. */
int words_take(struct words *w, const struct words *from, const char *name);

#endif
