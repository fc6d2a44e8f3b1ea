/* SPDX-License-Identifier: MIT */
/*
 * The incidents of a process, most of them limits that were met: see base/incidents.h.
 */
#ifndef TM3_INCIDENT_H
#define TM3_INCIDENT_H

#include "../base/incidents.h"

/*
 * Of a peer in SELDOM_SECONDS: who dials a few times, a session that loses its pipes, and what
 * is wrong with the messages of somebody's first own proxy, are told of one by one.
 */
enum { INCIDENT_LINES = 16 };

enum incident {
	INCIDENT_ALLOW,		/* no --allow covers it */
	INCIDENT_SESSIONS,	/* sessions of all, or of its address */
	INCIDENT_WAITING,	/* pipes that waited, of all or of its address */
	INCIDENT_GROUP,		/* pipes that made no group, or not in time */
	INCIDENT_HELLO,		/* no key, none in time, or something else */
	INCIDENT_ELSEWHERE,	/* pipes for a session of another address */
	INCIDENT_JOIN,		/* pipes that their session has no use for */
	INCIDENT_PROTOCOL,	/* what came broke the rules of a connection or a pipe */
	INCIDENT_DENIED,	/* connections to where they may not go */
	INCIDENT_CONNECTS,	/* times connects had to wait for others, */
	INCIDENT_OPENS,		/* or for the next moment, or flows came too soon */
	INCIDENT_NAMES,		/* times that names had to wait for others of their peer */
	INCIDENT_EARLY,		/* data ahead of their SYN, of a connection, */
	INCIDENT_REORDER,	/* messages out of order, of a session, */
	INCIDENT_GAP,		/* the time that one of them was missing, */
	INCIDENT_QUEUE,		/* what applications did not take */
	INCIDENT_CONNECTIONS,	/* connections, by what they take of memory, or of places */
	INCIDENT_FLOWS,		/* flows of datagrams, of a session; associations of lp */
	INCIDENT_MEMORY,	/* times that memory lacked, or was taken from who had most */
	INCIDENT_DESCRIPTORS,	/* no descriptor was left */
	INCIDENT_PORTS,		/* no local port was left */
	INCIDENT_LISTEN,	/* addresses that local proxies wanted listened on */
	INCIDENT_BEGUN,		/* sessions that began soon after others of their peer */
	INCIDENT_CHURN,		/* what sessions lost and got, soon after other such */
	INCIDENT_CLIENTS,	/* connections of lp's clients that it cannot relay */
	INCIDENT_KINDS,
};

extern const struct incidents_kind incident_kinds[INCIDENT_KINDS];

#endif
