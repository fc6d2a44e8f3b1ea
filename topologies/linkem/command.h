/* SPDX-License-Identifier: MIT */
/*
 * The commands of the control socket:
 *
 *   get                              what is in force
 *   set ab|ba|both KEY=VALUE...      from now on; all of it or nothing
 *   truth                            counters, as in the file
 *   stop                             ends as SIGTERM does
 */
#ifndef LINKEM_COMMAND_H
#define LINKEM_COMMAND_H

#include <stdio.h>

/* One line of JSON to @out. @emulator is a struct emulator. */
void command_answer(void *emulator, char *line, FILE *out);

#endif
