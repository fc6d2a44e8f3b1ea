/* SPDX-License-Identifier: MIT */
/*
 * The way of one connection to a server that it knows by name: the name is
 * looked up, each address that comes of it is checked by the rules as if it
 * had been asked for itself, and those that may be reached are tried, see
 * race.h.
 *
 * A session may have CALLS_LOOKING names looked up at a time, the others wait. One whose
 * connection was given up meanwhile counts until it is answered. All names of a peer
 * (quota.h), those of its datagrams too, have LOOKUPS_EACH threads at most: so those of one
 * peer, if they hang, do not keep all threads that look up. If those of several peers do, each
 * other peer has LOOKUPS_FEW threads nevertheless, which are started for it. They are reserved
 * for it as long as it has a session of the extension (see connector_reserves()).
 *
 * A call is the connection's until it ends; conn->asker leads to it. That it
 * does not take for ever is the connection's own to see to.
 */
#ifndef TM3_RP_CALL_H
#define TM3_RP_CALL_H

struct call;
struct conn;
struct connector;
struct list;

/*
 * LOOKUP_THREADS of the resolver, for all sessions of a worker. With those that are started for
 * peers that have few it has LOOKUPS_FEW more for each session that there may be, and for 64 in
 * any case. Two are the fewest, since a friend may have a name that hangs, too.
 */
enum {
	CALLS_LOOKING = 8,
	LOOKUP_THREADS = 32,
	LOOKUPS_EACH = LOOKUP_THREADS / 4,
	LOOKUPS_FEW = 2,
	LOOKUP_SESSIONS = 64,
};

/* 0 or -errno. How it ends is told by connector_connected() or _failed(). */
int call_begin(struct connector *c, struct conn *conn);
/* Gives it up. Nothing is told. */
void call_free(struct call *call);
/* Ends the connections of all @calls of a session that ended. */
void calls_end(struct list *calls);

#endif
