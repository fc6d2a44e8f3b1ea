/* SPDX-License-Identifier: MIT */
#include "reinject.h"

/* Where acknowledgements are heard all is well: as if it had left with the last of them. */
static int64_t overdue_at(const struct reinject_head *head)
{
	struct tail tail = head->tail;

	tail.written_at = head->sent_at;
	tail.left_at_once = false;
	return tail_overdue_at(&tail);
}

static int64_t due_at(enum reinject_mode mode, bool owed,
		      const struct reinject_head *head)
{
	if (mode == REINJECT_TIMELY)
		return overdue_at(head);
	return owed || head->timed_out ? head->sent_at : TAIL_NEVER;
}

int reinject_pick(enum reinject_mode mode, bool owed,
		  const struct reinject_head *head, unsigned int n, int64_t now,
		  int64_t *look_at)
{
	int best = -1;
	unsigned int i;

	*look_at = TAIL_NEVER;
	for (i = 0; i < n && mode != REINJECT_OFF; i++) {
		int64_t at = head[i].there ? due_at(mode, owed, &head[i]) :
					     TAIL_NEVER;

		if (at > now)
			*look_at = at < *look_at ? at : *look_at;
		else if (best < 0 || head[i].sent_at < head[best].sent_at)
			best = (int)i;
	}
	return best;
}

bool reinject_path_lives(int64_t heard_at, int64_t round_trip, int64_t now)
{
	return now - heard_at < round_trip / 2;
}

bool reinject_affords(uint64_t sent, uint64_t again, size_t len)
{
	return again + len <= REINJECT_BURST + sent / REINJECT_SHARE;
}

bool reinject_is_asked(uint64_t early, uint64_t limit)
{
	return early > limit - limit / 4;
}
