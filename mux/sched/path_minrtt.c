/* SPDX-License-Identifier: MIT */
/*
 * The path with the least round trip, queues included, as long as it takes anything, then the
 * next one: what MPTCP does by default.
 */
#include "../path/path.h"
#include "path_policy.h"

static const struct path *pick(const struct path_choice *choice,
			       const struct path *const *able, unsigned int n)
{
	const struct path *best = able[0];
	unsigned int i;

	(void)choice;
	for (i = 1; i < n; i++) {
		if (path_trip_ms(able[i]) < path_trip_ms(best))
			best = able[i];
	}
	return best;
}

const struct path_policy path_minrtt = {
	.name = "minrtt",
	.summary = "the nearest path until it is full, then the next one",
	.pick = pick,
};
