/* SPDX-License-Identifier: MIT */
/*
 * Where the flows of a session leave: one UDP socket for each.
 *
 * A flow with a destination has a connected socket: only its server is heard, and
 * an ICMP error from there resets the flow. One without has a socket for both
 * families, which is heard from wherever something comes (full cone), as far as the rules
 * allow. Each address of each datagram is checked by the rules of connections,
 * reach.h: those where datagrams go, those that come of names, and in a flow without a
 * destination those where datagrams come from.
 *
 * Names are looked up beside the loop. What is to go there waits meanwhile, at most
 * DATAGRAMS_MOST for a name and OUTLETS_WAITING bytes for a session. An address is used for
 * OUTLET_KNOWN_S, then it is asked for again; so it is after OUTLET_UNKNOWN_S where there
 * was none.
 */
#ifndef TM3_RP_OUTLET_H
#define TM3_RP_OUTLET_H

#include <stddef.h>
#include <stdint.h>

#include "finding.h"

struct conn;
struct connector;

enum {
	OUTLET_NAMES = 16,	/* of a flow; past it the first makes room */
	OUTLET_KNOWN_S = 30,
	OUTLET_UNKNOWN_S = 5,
	OUTLETS_WAITING = 4 << 20,
};

struct outlets {		/* of one session */
	struct connector *connector;
	struct findings findings;
	size_t waiting;		/* bytes that wait for an address */
	int64_t said_at;	/* that a datagram was denied; 0 never */
};

void outlets_init(struct outlets *all, struct connector *connector);
/* All flows of the session have ended by then. */
void outlets_fini(struct outlets *all);

/* The flow @c was opened by the other end. Past --max-opens it is refused. */
void outlet_open(struct outlets *all, struct conn *c);

#endif
