/* SPDX-License-Identifier: MIT */
/*
 * All goes over one path, and over the others only while that one does not work.
 */
#include "../path/paths.h"
#include "path_policy.h"

static bool uses(const struct path_choice *choice, const struct path *path)
{
	const struct path *it = &choice->paths->path[choice->number];

	return path == it || !paths_works(choice->paths, it);
}

const struct path_policy path_one = {
	.name = "one",
	.argument = "NAME",
	.summary = "that path (at rp its number, from 0 on), another one only while it does not work",
	.uses = uses,
};
