/* SPDX-License-Identifier: MIT */
#include "losses.h"

#include <string.h>

void losses_init(struct losses *l, double percent)
{
	memset(l, 0, sizeof(*l));
	l->threshold = percent / 100;
}

static const struct losses_at *oldest(const struct losses *l)
{
	return &l->seen[l->first];
}

static const struct losses_at *newest(const struct losses *l)
{
	return &l->seen[(l->first + l->count - 1) % (LOSSES_STEPS + 1)];
}

static void forget_oldest(struct losses *l)
{
	l->first = (l->first + 1) % (LOSSES_STEPS + 1);
	l->count--;
}

static void remember(struct losses *l, int64_t now, uint64_t sent,
		     uint64_t again)
{
	if (l->count == LOSSES_STEPS + 1)
		forget_oldest(l);
	while (l->count && now - oldest(l)->at > LOSSES_WINDOW)
		forget_oldest(l);
	l->seen[(l->first + l->count++) % (LOSSES_STEPS + 1)] =
		(struct losses_at){ now, sent, again };
}

uint64_t losses_sent(const struct losses *l)
{
	return l->count ? newest(l)->sent - oldest(l)->sent : 0;
}

uint64_t losses_again(const struct losses *l)
{
	return l->count ? newest(l)->again - oldest(l)->again : 0;
}

double losses_share(const struct losses *l)
{
	uint64_t sent = losses_sent(l);

	return sent ? (double)losses_again(l) / (double)sent : 0;
}

/* A timer is late at times: a step less is a whole window too. */
static bool is_whole(const struct losses *l)
{
	return newest(l)->at - oldest(l)->at >= LOSSES_WINDOW - 2 * LOSSES_STEP;
}

static bool is_time(const struct losses *l)
{
	if (losses_sent(l) < LOSSES_SENT)
		return false;
	if (l->on_sctp)
		return is_whole(l) && losses_share(l) < l->threshold / 2;
	return losses_again(l) >= LOSSES_AGAIN &&
	       losses_share(l) > l->threshold;
}

bool losses_add(struct losses *l, int64_t now, uint64_t sent, uint64_t again)
{
	remember(l, now, sent, again);
	if (!is_time(l))
		return false;
	l->share = losses_share(l);
	l->on_sctp = !l->on_sctp;
	l->switches++;
	l->first = l->count = 0;
	return true;
}
