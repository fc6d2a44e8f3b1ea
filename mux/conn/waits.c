/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <stdlib.h>

#include "reorder.h"

static struct waits *made(struct waits **w)
{
	if (!*w)
		*w = calloc(1, sizeof(**w));
	return *w;
}

static void note(struct waits *w, uint32_t messages, size_t payload)
{
	if (messages > w->most_messages)
		w->most_messages = messages;
	if (payload > w->most_payload)
		w->most_payload = payload;
}

/* Only to be taken do they become fewer: so there were never more than now, before it was. */
void waits_taken(struct waits **w, const struct reorder *q,
		 const struct reorder_early *early, int64_t us)
{
	if (!made(w))
		return;
	hist_add(&(*w)->delays, us);
	note(*w, reorder_count(q) + 1,
	     reorder_payload(q) + reorder_payload_of(early));
}

void waits_dropped(struct waits **w, const struct reorder *q)
{
	if (reorder_count(q) && made(w))
		note(*w, reorder_count(q), reorder_payload(q));
}
