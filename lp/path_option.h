/* SPDX-License-Identifier: MIT */
/*
 * What --path is told: "NAME,src=ADDR|dev=IFACE[,pipes=N][,cost=N][,backup]".
 */
#ifndef TM3_PATH_OPTION_H
#define TM3_PATH_OPTION_H

#include <stddef.h>

#include "../mux/settings/path_set.h"

enum {
	ABSENT_ONE = 128,	/* what is said of one path */
	ABSENT_TEXT = PATHS_MAX * (ABSENT_ONE + 2),
};

/* Adds one to @set. 0, or -1 with a line in @why. */
int path_option_add(struct path_set *set, const char *text, char *why,
		    size_t why_len);
/*
 * Of how many paths of @set this host has not the device or the address; @text names these.
 */
unsigned int path_option_absent(const struct path_set *set,
				char text[ABSENT_TEXT]);

#endif
