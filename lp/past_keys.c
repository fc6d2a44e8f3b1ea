/* SPDX-License-Identifier: MIT */
#include "past_keys.h"

#include <stdlib.h>

#include "../mux/options/key_file.h"
#include "../mux/pipe/conduit.h"

struct past_key {
	struct past_key *before;
	struct keys keys;
	struct layers *layers;
};

struct layers *past_keys_add(struct past_keys *past, struct layers *layers,
			     struct keys *before, const struct keys *keys)
{
	struct past_key *own = calloc(1, sizeof(*own));
	struct layers *next = own ? layers->beside(layers) : NULL;

	if (!next) {
		free(own);
		layers->take(layers, keys);
		keys_fini(before);
		return NULL;
	}
	*own = (struct past_key){ past->last, *before, layers };
	*before = (struct keys){ 0 };
	past->last = own;
	layers->take(layers, &own->keys);
	next->take(next, keys);
	return next;
}

/* All are copies of the first. */
static void put_back(struct past_keys *past, struct layers *layers)
{
	if (layers != past->first)
		layers->put_beside(layers);
}

void past_keys_keep(struct past_keys *past, const struct layers *in_use,
		    const struct keys *keys)
{
	struct past_key **at = &past->last;

	while (*at) {
		struct past_key *own = *at;

		if (own->layers == in_use) {
			at = &own->before;
			continue;
		}
		*at = own->before;
		if (own->layers == past->first)
			past->first->take(past->first, keys);
		put_back(past, own->layers);
		keys_fini(&own->keys);
		free(own);
	}
}

void past_keys_fini(struct past_keys *past, struct layers *layers)
{
	if (layers)
		put_back(past, layers);
	while (past->last) {
		struct past_key *own = past->last;

		past->last = own->before;
		put_back(past, own->layers);
		keys_fini(&own->keys);
		free(own);
	}
}
