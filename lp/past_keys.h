/* SPDX-License-Identifier: MIT */
/*
 * The keys that lp showed before. A session goes on with the key that it began with: RP
 * takes a pipe for it by no other. So layers with a former key are there as long as one uses them.
 */
#ifndef TM3_PAST_KEYS_H
#define TM3_PAST_KEYS_H

#include <stdbool.h>

struct keys;
struct layers;
struct past_key;

struct past_keys {
	struct layers *first;	/* that there were, or NULL; their end is the caller's */
	struct past_key *last;	/* or NULL: there was no other */
};

/*
 * @layers are those until now, with @before, whose content is this room's from here on.
 * Returns others, with @keys, or NULL for want of memory: then @layers have those.
 */
struct layers *past_keys_add(struct past_keys *past, struct layers *layers,
			     struct keys *before, const struct keys *keys);
/*
 * Of former ones none but @in_use, or NULL, is used: the others go, and so do their keys. The
 * first stays, with @keys.
 */
void past_keys_keep(struct past_keys *past, const struct layers *in_use,
		    const struct keys *keys);
/* @layers: the last that past_keys_add() gave, or the first; or NULL. */
void past_keys_fini(struct past_keys *past, struct layers *layers);

#endif
