/* SPDX-License-Identifier: MIT */
/*
 * May this peer's connection go to that address? Puts together what is known of
 * the rules, of this host's addresses, and of the ports that rp itself listens
 * on, which no rule opens: its pipes would lead to itself.
 *
 * An IPv6 address that leads to an IPv4 one is judged as both.
 */
#ifndef TM3_RP_REACH_H
#define TM3_RP_REACH_H

#include <stdbool.h>
#include <sys/socket.h>

#include "access.h"

struct entrances;
struct host;

enum { REACH_ENTRANCES = 2 };

struct reach {
	const struct access *access;
	const struct host *host;
	/* Of the baseline, of the extension. */
	const struct entrances *entrances[REACH_ENTRANCES];
};

/* @local: the peer comes from this host. If not, the reason is put into @why. */
bool reach_allows(const struct reach *r, const struct sockaddr_storage *to,
		  bool local, char why[ACCESS_WHY]);

#endif
