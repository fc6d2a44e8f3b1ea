/* SPDX-License-Identifier: MIT */
/*
 * Runs once more, from what is kept: whole, or the messages of a pipe's last ones that are missing.
 */
#include <stdlib.h>
#include <string.h>

#include "extended.h"
#include "sent_run.h"

struct run *duplicate_run(const struct run *run)
{
	struct run *copy = malloc(sizeof(*copy) + run->len);

	if (!copy)
		return NULL;
	memcpy(copy, run, sizeof(*copy) + run->len);
	copy->size = copy->len;
	copy->sent = 0;
	copy->next = NULL;
	copy->kept = false;
	copy->copy = true;
	return copy;
}

static bool ends_beyond(struct kept_item *item, uint64_t at)
{
	return item && sent_run_of(item)->end > at;
}

/* The first. From the last on: of what is kept most has arrived, and waits for an ACK alone. */
static const struct sent_run *beyond(const struct leg *leg, uint64_t at)
{
	struct kept_item *item = leg->kept.last;

	if (!ends_beyond(item, at))
		return NULL;
	while (ends_beyond(item->prev, at))
		item = item->prev;
	return sent_run_of(item);
}

uint64_t duplicate_beyond(const struct leg *leg, uint64_t at)
{
	const struct sent_run *sent = beyond(leg, at);

	return sent ? sent->end : 0;
}

int64_t duplicate_sent_at(const struct leg *leg, uint64_t at)
{
	const struct sent_run *sent = beyond(leg, at);

	return sent ? sent->sent_at : 0;
}

uint8_t duplicate_paths(const struct leg *leg, uint64_t at)
{
	const struct sent_run *sent = beyond(leg, at);

	return sent ? sent->run->paths : 0;
}

/* What ends at or before @at is left out of @run, whose end is at @end. */
static void leave_out(struct run *run, uint64_t end, uint64_t at)
{
	uint64_t begin = end - run->len;
	struct wire_msg msg;
	size_t skip = 0;
	int n;

	while ((n = wire_read_up_to(run->buf + skip, run->len - skip,
				    WIRE_LARGE_MAX, &msg)) > 0 &&
	       begin + skip + (size_t)n <= at) {
		skip += (size_t)n;
		run->messages--;
		run->uncounted -= !wire_ext_counts(&msg);
		run->first++;
	}
	run->len -= skip;
	memmove(run->buf, run->buf + skip, run->len);
}

struct run *duplicate_missing(const struct leg *leg, uint64_t at, bool sealed)
{
	const struct sent_run *of = beyond(leg, at);
	struct run *run = duplicate_run(of->run);

	if (!run)
		return NULL;
	if (!sealed)	/* half of a record is nothing to read */
		leave_out(run, of->end, at);
	return run;
}

bool duplicate_may_go_by(const struct pipe *p)
{
	return !p->overdue && !p->doubtful && !p->standby;
}
