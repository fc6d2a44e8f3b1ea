/* SPDX-License-Identifier: MIT */
/*
 * A message on each path in turn, the nearest first; one that takes nothing now misses its
 * turn.
 */
#include "../path/path.h"
#include "../path/paths.h"
#include "path_policy.h"

/* How many of the session's paths come before it. */
static unsigned int place(const struct path_choice *choice,
			  const struct path *path)
{
	const struct paths *paths = choice->paths;
	unsigned int n = 0, i;

	for (i = 0; i < paths->npaths; i++) {
		const struct path *other = &paths->path[i];

		if (other == path || !other->npipes)
			continue;
		n += path_base_ms(other) < path_base_ms(path) ||
		     (path_base_ms(other) <= path_base_ms(path) && other < path);
	}
	return n;
}

static const struct path *pick(const struct path_choice *choice,
			       const struct path *const *able, unsigned int n)
{
	unsigned int all = choice->paths->npaths, least = all, best = 0, i;

	for (i = 0; i < n; i++) {
		unsigned int ahead = (place(choice, able[i]) + all -
				      choice->turn % all) % all;

		if (ahead >= least)
			continue;
		least = ahead;
		best = i;
	}
	return able[best];
}

static void sent(struct path_choice *choice, const struct path *path,
		 struct conn *c, size_t bytes)
{
	(void)c;
	(void)bytes;
	choice->turn = place(choice, path) + 1;
}

const struct path_policy path_rr = {
	.name = "rr",
	.summary = "a message on each path in turn, the nearest first",
	.pick = pick,
	.sent = sent,
	.by_message = true,
};
