/* SPDX-License-Identifier: MIT */
/*
 * Listening where the command line says, and saying so.
 */
#ifndef TM3_RP_LISTENING_H
#define TM3_RP_LISTENING_H

#include <stdbool.h>

#include "../mux/base/ports.h"

struct entrances;
struct log;
struct options;

/*
 * Opens the @entrances of the baseline, or with @extended those of the
 * extension. 0, or -errno after it said what is wrong; -EADDRNOTAVAIL is not said:
 * the address is in @ports then, because it may come later; of the extension's default
 * addresses, that of --listen which it goes with. That these cannot be had otherwise is
 * said, but is no failure.
 *
 * Sockets in @ports are taken that are named "pipes", or with @extended "extended";
 * without such a name those at an address of this kind, or else at its usual port.
 * Where there are any sockets, addresses that are mere defaults are not listened on.
 */
int listening_open(struct entrances *entrances, const struct options *options,
		   bool extended, struct log *log, struct ports *ports);

/* "listening on 127.0.0.1:6000 for 4 pipes", for each of them. */
void listening_say(const struct entrances *entrances,
		   const struct options *options, bool extended,
		   struct log *log);
/* Without --allow a warning is due, unless only loopback is listened on. */
void listening_say_who_may(const struct options *options,
			   const struct entrances *baseline,
			   const struct entrances *extended, struct log *log);
/* So is one where --permit-listen has no use, because nobody can ask. */
void listening_say_if_in_vain(const struct options *options,
			      const struct entrances *extended, struct log *log);

#endif
