/* SPDX-License-Identifier: MIT */
/*
 * What may be said of a connection to --control: how much it is to receive, how urgent it is, and
 * which paths may carry it. It is named by the address and port that its application has, or by
 * its id. RP is told by a HINT; urgency and paths are for both ways.
 *
 *	hint ADDRESS:PORT|ID [size=BYTES] [urgency=0-255] [paths=NAME,...|any]
 *
 * What a command does not name stays as it was.
 */
#ifndef TM3_HINT_CONTROL_H
#define TM3_HINT_CONTROL_H

#include <stdio.h>

#include "../mux/settings/path_set.h"

struct session;
struct ways_in;

/*
 * @word: the @n words behind "hint". @s: the session there is, or NULL. @ways_in: an application may
 * tell of a connection that is in their queues still.
 */
void hint_control_do(struct session *s, const struct path_set *paths,
		     const struct ways_in *ways_in, char **word, unsigned int n,
		     FILE *out);

#endif
