/* SPDX-License-Identifier: MIT */
/*
 * Each byte belongs to the path where round trip and queue together are least, be there room in
 * its windows or not: so it is ecf with round trips for delays, and leaves a far path idle for up
 * to twice as many bytes.
 */
#include "path_policy.h"

static bool takes(const struct path_choice *choice, const struct path *path,
		  const struct conn *c)
{
	return path_is_in_time(choice, path, c, 1, 0);
}

const struct path_policy path_txdelay = {
	.name = "txdelay",
	.summary = "as ecf, with round trips for delays",
	.pick = path_nearest,
	.takes = takes,
	.by_message = true,
	.by_size = true,
};
