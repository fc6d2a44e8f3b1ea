/* SPDX-License-Identifier: MIT */
/*
 * What --path is told: "NAME,src=ADDR|dev=IFACE[,pipes=N][,cost=N][,backup]".
 */
#ifndef TM3_PATH_OPTION_H
#define TM3_PATH_OPTION_H

#include <stddef.h>

#include "../mux/settings/path_set.h"

/* Adds one to @set. 0, or -1 with a line in @why. */
int path_option_add(struct path_set *set, const char *text, char *why,
		    size_t why_len);
/* Has this host the devices and addresses that @set names? 0, or -1 with a line in @why. */
int path_option_find(const struct path_set *set, char *why, size_t why_len);

#endif
