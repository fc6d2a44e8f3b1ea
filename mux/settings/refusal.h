/* SPDX-License-Identifier: MIT */
/*
 * The limits of a process that are counted and said by peer, see base/refusals.h.
 */
#ifndef TM3_REFUSAL_H
#define TM3_REFUSAL_H

#include "../base/refusals.h"

/*
 * Of a peer in SELDOM_SECONDS: who dials a few times, a session that loses its pipes, and what
 * is wrong with the messages of somebody's first own proxy, are told of one by one.
 */
enum { REFUSAL_LINES = 16 };

enum refusal {
	REFUSAL_ALLOW,		/* no --allow covers it */
	REFUSAL_SESSIONS,	/* sessions of all, or of its address */
	REFUSAL_WAITING,	/* pipes that waited, of all or of its address */
	REFUSAL_GROUP,		/* pipes that made no group, or not in time */
	REFUSAL_HELLO,		/* no key, none in time, or something else */
	REFUSAL_ELSEWHERE,	/* pipes for a session of another address */
	REFUSAL_JOIN,		/* pipes that their session has no use for */
	REFUSAL_PROTOCOL,	/* what came broke the rules of a connection or a pipe */
	REFUSAL_DENIED,		/* connections to where they may not go */
	REFUSAL_CONNECTS,	/* times connects had to wait for others, */
	REFUSAL_OPENS,		/* or for the next moment, or flows came too soon */
	REFUSAL_NAMES,		/* times that names had to wait for others of their peer */
	REFUSAL_EARLY,		/* data ahead of their SYN, of a connection, */
	REFUSAL_REORDER,	/* messages out of order, of a session, */
	REFUSAL_GAP,		/* the time that one of them was missing, */
	REFUSAL_QUEUE,		/* what applications did not take */
	REFUSAL_CONNECTIONS,	/* connections, by what they take of memory, or of places */
	REFUSAL_FLOWS,		/* flows of datagrams, of a session; associations of lp */
	REFUSAL_MEMORY,		/* times that memory lacked, or was taken from who had most */
	REFUSAL_DESCRIPTORS,	/* no descriptor was left */
	REFUSAL_PORTS,		/* no local port was left */
	REFUSAL_LISTEN,		/* addresses that local proxies wanted listened on */
	REFUSAL_BEGUN,		/* sessions that began soon after others of their peer */
	REFUSAL_CHURN,		/* what sessions lost and got, soon after other such */
	REFUSAL_CLIENTS,	/* connections of lp's clients that it cannot relay */
	REFUSAL_KINDS,
};

extern const struct refusals_kind refusal_kinds[REFUSAL_KINDS];

#endif
