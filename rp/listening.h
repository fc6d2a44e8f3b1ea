/* SPDX-License-Identifier: MIT */
/*
 * Listening where the command line says, and saying so.
 */
#ifndef TM3_RP_LISTENING_H
#define TM3_RP_LISTENING_H

#include <stdbool.h>

#include "../mux/base/sock.h"

struct entrances;
struct log;
struct options;

/*
 * Opens the @entrances of the baseline, or with @extended those of the
 * extension. 0, or -errno after it said what is wrong; -EADDRNOTAVAIL is not said:
 * the address is in @awaited then, because it may come later. That the extension's
 * default addresses cannot be had is said, but is no failure.
 */
int listening_open(struct entrances *entrances, const struct options *options,
		   bool extended, struct log *log, char awaited[ADDR_TEXT]);

/* "listening on 127.0.0.1:6000 for 4 pipes", for each of them. */
void listening_say(const struct entrances *entrances,
		   const struct options *options, bool extended,
		   struct log *log);
/* Without --allow a warning is due, unless only loopback is listened on. */
void listening_say_who_may(const struct options *options, struct log *log);

#endif
