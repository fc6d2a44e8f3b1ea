/* SPDX-License-Identifier: MIT */
/*
 * Every message over every path: what arrives first counts. A path sends the oldest that it has not
 * sent yet and that is not known to have arrived, so each is through with all as soon as it can be.
 */
#include "path_policy.h"

const struct path_policy path_copies = {
	.name = "copies",
	.summary = "every message over every path",
	.pick = path_nearest,
	.twice = PATH_TWICE_ALL,
	.by_message = true,
};
