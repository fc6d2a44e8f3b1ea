/* SPDX-License-Identifier: MIT */
/*
 * What lp's options say of paths, together: --path, --rule, --path-policy, --control.
 */
#ifndef TM3_LP_OPTIONS_PATHS_H
#define TM3_LP_OPTIONS_PATHS_H

#include <stddef.h>

struct options;

/*
 * Once all were given: finds the paths that are named, and at the start those that this host has
 * not. 0, or -1 with a line in @why.
 */
int options_take_paths(struct options *o, char *why, size_t why_len);
/* What does not go together. 0, or -1 with a line in @why. */
int options_check_paths(const struct options *o, char *why, size_t why_len);

#endif
