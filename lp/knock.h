/* SPDX-License-Identifier: MIT */
/*
 * Knocks at RP's other addresses while the one that is tried is silent: after
 * RACE_STEP_MS they are connected to, one after the other (race.h), to see who is
 * there. What was connected is closed.
 */
#ifndef TM3_LP_KNOCK_H
#define TM3_LP_KNOCK_H

#include <stdbool.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"
#include "../mux/base/race.h"
#include "../mux/settings/path_set.h"
#include "../mux/settings/transports.h"

struct knock;

struct knock_ops {
	/* Is what is tried silent still? */
	bool (*is_silent)(const struct knock *k);
	/* It is, and @who is there. NULL: one of them refuses, and none is. */
	void (*answered)(struct knock *k, const struct sockaddr_storage *who);
};

struct knock {
	const struct knock_ops *ops;
	const struct transport_set *transports;
	const struct path_spec *path;	/* by which they leave, or NULL */
	struct timer timer;
	struct race race;
};

void knock_init(struct knock *k, const struct knock_ops *ops,
		struct loop *loop, const struct transport_set *transports);
/* At @n addresses with their ports; none is fine. */
void knock_soon(struct knock *k, const struct sockaddr_storage *addr,
		unsigned int n);
void knock_stop(struct knock *k);

#endif
