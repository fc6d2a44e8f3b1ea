/* SPDX-License-Identifier: MIT */
#include "promptness.h"

enum {
	WHOLE = 1000,		/* one late in so many */
	LOST = 2 * WHOLE,	/* or two for one that was lost, */
	MOST = 4 * WHOLE,	/* owed or left, no more than this */
};

void promptness_init(struct promptness *of)
{
	*of = (struct promptness){ .trial = PROMPTNESS_TRIAL };
}

bool promptness_is_known(const struct promptness *of)
{
	return !of->trial && of->balance >= 0;
}

static void gain(struct promptness *of, int32_t by)
{
	of->balance += by;
	if (of->balance > MOST)
		of->balance = MOST;
	if (of->balance < -MOST)
		of->balance = -MOST;
}

static void came_in_time(struct promptness *of)
{
	of->trial -= of->trial > 0;
	gain(of, 1);
}

void sample_begin(struct sample *s, uint64_t end, int64_t now, int64_t patience,
		  uint32_t again)
{
	*s = (struct sample){
		.end = end, .sent_at = now, .due = now + patience,
		.again = again,
	};
}

/* Of one that was followed nobody knows whose acknowledgement it was that came. */
static void conclude(const struct sample *s, struct promptness *of,
		     uint32_t again)
{
	if (!s->late)
		came_in_time(of);
	else if (s->again != again)
		gain(of, LOST);
	else if (!s->followed)
		gain(of, -WHOLE);
}

bool sample_look(struct sample *s, struct promptness *of, uint64_t arrived,
		 uint32_t again, int64_t now)
{
	if (!s->end)
		return false;
	if (arrived < s->end) {
		s->late |= now >= s->due;
		return false;
	}
	conclude(s, of, again);
	s->end = 0;
	return true;
}

/* Once it is late ever more rarely: it may be lost, and its pipe dead. */
int64_t sample_next(const struct sample *s, int64_t now)
{
	if (!s->end)
		return INT64_MAX;
	return s->due > now ? s->due : now + (now - s->sent_at);
}
