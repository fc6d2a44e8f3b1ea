/* SPDX-License-Identifier: MIT */
/*
 * All pipes are looked at together, whichever path they are on: the pipes' policy decides.
 */
#include "path_policy.h"

const struct path_policy path_soonest = {
	.name = "soonest",
	.summary = "as --pipe-policy says, over the pipes of all paths",
};
