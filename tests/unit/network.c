/* SPDX-License-Identifier: MIT */
#include "network.h"

#include <string.h>

void network_init(struct network *n, const struct model_params *is,
		  struct random *chance)
{
	memset(n, 0, sizeof(*n));
	n->is = is;
	n->chance = chance;
}

static bool happens(struct random *chance, double share)
{
	return share > 0 && random_below(chance, 1000000) < share * 1e6;
}

/* Gilbert's channel: within a burst everything is lost. */
static bool is_lost(struct network *n)
{
	double burst = n->is->burst, loss = n->is->loss;

	if (burst <= 0)
		return happens(n->chance, loss);
	n->bad = happens(n->chance, n->bad ? 1 - 1 / burst :
			 loss / burst / (1 - loss));
	return n->bad;
}

int64_t network_queue(const struct network *n, int64_t now)
{
	return n->busy_until > now ? n->busy_until - now : 0;
}

static bool is_silent(const struct network *n, int64_t now)
{
	return now >= n->is->silent_from && now < n->is->silent_to;
}

static double waiting(const struct network *n, int64_t now)
{
	if (n->is->trace)
		return cellular_bytes(n->is->trace, now, n->busy_until);
	return (double)network_queue(n, now) / 1e9 * n->is->rate;
}

/*
 * When the last bit has passed, or -1: there is no room. Some messages are
 * several segments: room for the first is enough, lest they never find it
 * beside shorter ones.
 */
static int64_t pass(struct network *n, int64_t now, size_t len)
{
	size_t first = len < NETWORK_MTU ? len : NETWORK_MTU;

	if (n->through)
		return pass(n->through, now, len);
	if (n->busy_until < now)
		n->busy_until = now;
	if (waiting(n, now) + (double)first > (double)n->is->queue) {
		n->dropped++;
		return -1;
	}
	if (n->is->trace)
		n->busy_until = cellular_after(n->is->trace, n->busy_until, len);
	else
		n->busy_until += (int64_t)((double)len / n->is->rate * 1e9);
	if (network_queue(n, now) > n->longest)
		n->longest = network_queue(n, now);
	return n->busy_until;
}

static int64_t late(struct network *n, int64_t jitter)
{
	return jitter ? random_below(n->chance, (uint32_t)(jitter / 1000)) *
		INT64_C(1000) : 0;
}

int64_t network_handshake(struct network *n)
{
	return n->is->rtt + late(n, n->is->jitter) + late(n, n->is->jitter_back);
}

int64_t network_send(struct network *n, int64_t now, size_t len)
{
	bool lost = is_lost(n);
	int64_t at = lost || is_silent(n, now) ? -1 : pass(n, now, len);

	if (at < 0)
		return -1;
	at += n->is->rtt / 2 + late(n, n->is->jitter);
	if (!n->is->reorder && at < n->arrives)
		at = n->arrives;
	n->arrives = at;
	return at;
}

int64_t network_back(struct network *n, int64_t now)
{
	int64_t at = now + n->is->rtt / 2 + late(n, n->is->jitter_back);

	if (happens(n->chance, n->is->loss_back) || is_silent(n, now))
		return -1;
	if (at < n->returns)
		at = n->returns;
	n->returns = at;
	return at;
}
