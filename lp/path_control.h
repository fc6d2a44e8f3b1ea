/* SPDX-License-Identifier: MIT */
/*
 * What may be said of LP's paths and connections while it runs: a command is a line, and its
 * answer ends with the line "ok", or is one that begins with "error: ".
 *
 *	list				a line for each path
 *	path NAME use|backup|off	how it is used from now on, in later
 *					sessions as well
 *	hint CONNECTION ...		see hint_control.h
 *
 * A path that is off keeps its pipes, and nothing new goes on them. One path at least is not off.
 */
#ifndef TM3_PATH_CONTROL_H
#define TM3_PATH_CONTROL_H

#include <stdint.h>
#include <stdio.h>

#include "../mux/settings/path_set.h"

struct session;
struct ways_in;

struct path_control {
	const struct path_set *paths;
	const struct ways_in *ways_in;	/* by which connections come */
	struct session *session;	/* the one there is, or NULL */
	uint8_t state[PATHS_MAX];	/* as wanted: an enum wire_path_state */
};

void path_control_init(struct path_control *pc, const struct path_set *paths,
		       const struct ways_in *ways_in);
/* @s, a session of LP's, begins; or NULL: it has ended. */
void path_control_begin(struct path_control *pc, struct session *s);
/* Does what @line says, which is changed, and writes the answer. */
void path_control_do(struct path_control *pc, char *line, FILE *out);

#endif
