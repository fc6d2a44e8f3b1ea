/* SPDX-License-Identifier: MIT */
#include "hoard.h"

void hoard_init(struct hoard *h, struct hoard *above, size_t max)
{
	*h = (struct hoard){ .above = above, .max = max };
	list_init(&h->below);
	list_init(&h->member);
	if (above)
		list_add_tail(&above->below, &h->member);
}

static void add_above(struct hoard *h, int64_t bytes)
{
	while ((h = h->above))
		h->bytes += (size_t)bytes;
}

void hoard_move(struct hoard *h, struct hoard *above)
{
	add_above(h, -(int64_t)h->bytes);
	h->above = above;
	add_above(h, (int64_t)h->bytes);
	list_move_tail(&above->below, &h->member);
}

void hoard_fini(struct hoard *h)
{
	while (!list_empty(&h->below))
		hoard_move(list_first(&h->below, struct hoard, member),
			   h->above);
	add_above(h, -(int64_t)h->bytes);
	list_del(&h->member);
}

bool hoard_exceeded(const struct hoard *leaf)
{
	const struct hoard *h;

	for (h = leaf->above; h; h = h->above) {
		if (h->bytes > h->max)
			return true;
	}
	return false;
}

bool hoard_add(struct hoard *leaf, int64_t bytes)
{
	leaf->bytes += (size_t)bytes;
	add_above(leaf, bytes);
	return hoard_exceeded(leaf);
}

static struct hoard *leaf_of_most(struct hoard *h)
{
	while (!list_empty(&h->below)) {
		struct hoard *most = NULL;
		struct list *pos, *tmp;

		list_each(pos, tmp, &h->below) {
			struct hoard *one = list_entry(pos, struct hoard,
						       member);

			if (!most || one->bytes > most->bytes)
				most = one;
		}
		h = most;
	}
	return h;
}

/* Those below first, so that who is above a limit of its own pays alone. */
void hoard_relieve(struct hoard *root)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &root->below)
		hoard_relieve(list_entry(pos, struct hoard, member));
	if (list_empty(&root->below) || root->bytes <= root->max)
		return;
	while (root->bytes > root->max - root->max / 8) {
		struct hoard *leaf = leaf_of_most(root);
		size_t before = root->bytes;

		if (!leaf->shed)
			return;
		leaf->shed(leaf, root->bytes - (root->max - root->max / 8));
		if (root->bytes >= before)
			return;
	}
}
