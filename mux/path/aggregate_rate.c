/* SPDX-License-Identifier: MIT */
/*
 * The rate of the path: by how long a message took while the limit is in the
 * way, by what arrived while there was a queue otherwise.
 */
#include "aggregate_inside.h"

/* What arrives behind such a queue and for so long tells a rate. */
#define TRAIN_QUEUE (NS_PER_MS)
#define TRAIN_MIN (10 * NS_PER_MS)
#define TRAIN_MAX (200 * NS_PER_MS)

/* No message tells so much more than what arrived in all. */
#define ABOVE 1.1

/*
 * The fastest message of a round. On a fast path, where many are written and
 * acknowledged at once, that is too much: so not far above what arrived in all.
 */
static double rate_of_round(const struct aggregate *a)
{
	if (a->limited && a->delivery > 0 && a->most > a->delivery * ABOVE)
		return a->delivery * ABOVE;
	return a->most;
}

/*
 * A round in which this machine or the path stood still for a moment tells a
 * rate too low; so the best of the last ones counts.
 */
void rate_set(struct aggregate *a)
{
	unsigned int i;

	if (a->state != AGGREGATE_BOUND) {
		for (i = 0; i < RATES; i++)
			a->rates[i] = a->latest;
	}
	a->rates[a->rounds % RATES] =
		a->state == AGGREGATE_BOUND ? rate_of_round(a) : a->latest;
	a->rate = a->rates[0];
	for (i = 1; i < RATES; i++) {
		if (a->rates[i] > a->rate)
			a->rate = a->rates[i];
	}
}

static void begin_train(struct aggregate *a, const struct aggregate_ack *ack)
{
	a->train_at = ack->counted_at;
	a->train = ack->delivered;
}

/*
 * Without a limit in the way bytes in flight may be lost ones, and grow; and of
 * a burst the first tell nothing of the rate by how long they took. Then what
 * arrives as long as there is a queue tells it: the bottleneck is at work all
 * the time. Where there is none, a new such train begins. A page's bursts leave
 * pauses in which it is not at work, though not every one is seen: so trains
 * are short then, and the fastest of a round counts. With a limit in the way
 * there is one a round.
 */
void rate_mind_delivery(struct aggregate *a, const struct aggregate_ack *ack,
			int64_t rtt)
{
	bool bound = a->state == AGGREGATE_BOUND;
	bool brief = a->state == AGGREGATE_FREE;
	int64_t since = ack->counted_at - a->train_at;
	double rate;

	if (!bound && rtt - path_base(a) < TRAIN_QUEUE)
		a->train_at = a->delivery = 0;
	if (!a->train_at || since > TRAIN_MAX) {
		begin_train(a, ack);
	} else if (since >= (bound ? TRAIN_MIN / 2 : TRAIN_MIN) &&
		   ack->delivered > a->train) {
		rate = (double)(ack->delivered - a->train) * 1e9 /
			(double)since;
		if (!brief || a->old || rate > a->delivery)
			a->delivery = rate;
		a->old = false;
		if (brief)
			begin_train(a, ack);
	}
	if (a->delivery > 0 && !bound)
		a->latest = a->delivery;
}
