/* SPDX-License-Identifier: MIT */
#include "kept.h"

void kept_init(struct kept *kept, uint32_t incarnation)
{
	*kept = (struct kept){ .incarnation = incarnation };
}

void kept_add(struct kept *kept, struct kept_item *item, uint32_t messages,
	      size_t bytes)
{
	kept->sent += messages;
	kept->bytes += bytes;
	item->last = kept->sent;
	item->bytes = bytes;
	item->next = NULL;
	item->prev = kept->last;
	item->there = false;
	list_init(&item->twins);
	if (kept->last)
		kept->last->next = item;
	else
		kept->first = item;
	kept->last = item;
}

/* Takes the items up to count @last off the front. */
static struct kept_item *take(struct kept *kept, uint64_t last)
{
	struct kept_item *taken = kept->first, **at = &taken;

	while (*at && (*at)->last <= last) {
		kept->bytes -= (*at)->bytes;
		at = &(*at)->next;
	}
	kept->first = *at;
	*at = NULL;
	if (kept->first)
		kept->first->prev = NULL;
	else
		kept->last = NULL;
	return taken;
}

enum kept_verdict kept_ack(struct kept *kept, uint32_t incarnation,
			   uint64_t received, struct kept_item **freed)
{
	*freed = NULL;
	if (incarnation != kept->incarnation)
		return KEPT_OTHER;
	if (received > kept->sent)
		return KEPT_BEYOND;
	if (received > kept->received) {
		kept->received = received;
		*freed = take(kept, received);
	}
	return KEPT_OK;
}

struct kept_item *kept_end(struct kept *kept)
{
	return take(kept, UINT64_MAX);
}

void kept_twin(struct kept_item *item, struct kept_item *of)
{
	item->there = of->there;
	list_add_tail(&of->twins, &item->twins);
}

void kept_arrived(struct kept_item *item)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &item->twins) {
		list_entry(pos, struct kept_item, twins)->there = true;
		list_del(pos);
	}
}

bool kept_goes_again(struct kept_item *item)
{
	bool alone = list_empty(&item->twins);

	list_del(&item->twins);
	return alone && !item->there;
}
