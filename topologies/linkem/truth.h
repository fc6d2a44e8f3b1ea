/* SPDX-License-Identifier: MIT */
/* What the emulator knows to be true of itself, as JSON. */
#ifndef LINKEM_TRUTH_H
#define LINKEM_TRUTH_H

#include <stdio.h>

#include "emulator.h"

/* `"version":...` up to both ends: what does not change; without braces. */
void truth_head(const struct emulator *e, FILE *out);

/* `"ab":PARAMETERS,"ba":PARAMETERS`, without braces. */
void truth_params(const struct emulator *e, FILE *out);

/* One object, everything, on one line; @state is running or ended. */
void truth_print(struct emulator *e, const char *state, FILE *out);

/* Into a file of that name, which is never half written. 0 or -errno. */
int truth_write(struct emulator *e, const char *state, const char *path);

/* A line for each direction: the queue at @now. */
void truth_sample(struct emulator *e, FILE *out, int64_t now);

/* A line for a packet that will not arrive; fits struct link_watch. */
void truth_drop(void *arg, int direction, const struct packet *p,
		enum link_end end, int64_t at);

/* `ab` or `ba`. */
extern const char *const truth_direction[2];

#endif
