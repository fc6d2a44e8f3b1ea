/* SPDX-License-Identifier: MIT */
/*
 * The connect() calls to servers, of all sessions of a thread.
 *
 * One connect() takes milliseconds when most local ports towards a destination
 * are taken. So a SYN only puts its connection in line. Connects are begun
 * after the batch of events, one of each session in turn, and for
 * CONNECTS_TURN_US at most; then others have their turn.
 *
 * Where to is checked by the rules first: see reach.h. A name may lead to
 * several addresses, so its way is longer: see call.h.
 *
 * A session may have --max-connects under way, and begin --max-opens in a second; more
 * of its connections stay in line until one of them comes to an end, or the time has
 * come, and are refused when that takes as long as a connect() may. A connection
 * counts as under way until its connect() has ended or was cancelled: one that ends
 * before, with nothing to be delivered, gives its local port back at once. So who
 * opens and resets does not have more under way than others, but it could begin them
 * as fast as it can write. A second's worth may be begun at once by who began none.
 * Flows of datagrams count among --max-opens, and are refused where others wait.
 *
 * Of the descriptors that pipes leave, sessions of one address may have three quarters. Where none
 * is left, the address that has most sockets loses one for an address that has fewer;
 * and of an address, the session that has most for one that has fewer (quota.h); and for
 * each pipe that comes where sockets took what pipes may have, who has most gives one up. Who
 * comes to lent ports has half of what an address may have: the other half is for what its
 * local proxies open. Of several threads that have sessions each has a part of the
 * descriptors, in which all of this is true.
 */
#ifndef TM3_RP_CONNECTS_H
#define TM3_RP_CONNECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/list.h"
#include "../mux/base/loop.h"
#include "../mux/base/resolver.h"

struct conn;
struct engine;
struct options;
struct quota;
struct quota_share;
struct reach;

enum { CONNECTS_TURN_US = 200, CONN_TEXT = 320 };

struct connects {
	struct engine *engine;
	const struct options *options;
	const struct reach *reach;
	struct quota *quota;
	unsigned int sockets;	/* of all sessions */
	unsigned long limit;	/* of descriptors, as the kernel last told it; 0: it was not asked */
	int64_t limit_asked_at;	/* the batch of events when it was */
	struct resolver *names;
	struct list in_line;	/* the sessions whose turn comes */
	struct task turn;
};

struct connector {		/* of one session */
	struct connects *all;
	bool local;		/* its peer came from this host */
	struct quota_share *share;	/* counts the sockets, of those under way too; no names */
	struct list member;
	struct list in_line;	/* its connections, the oldest first */
	unsigned int under_way;
	struct list calls;	/* its connections to names, but those */
	struct list unasked;	/* whose lookups wait for others, */
	unsigned int looking;	/* of which there are so many */
	bool waits;		/* those in line do, and it was counted */
	bool reserves;		/* threads that look names up */
	int64_t open_at;	/* when the next one is due, if they come evenly */
	struct timer open_timer;	/* set while those in line wait for that */
};

/* 0 or -ENOMEM and its like. Call connects_fini() in either case. */
int connects_init(struct connects *all, struct engine *engine,
		  const struct options *options, const struct reach *reach,
		  struct quota *quota);
void connects_fini(struct connects *all);
/* There may be another number of sessions. */
void connects_review(struct connects *all);

void connector_init(struct connector *c, struct connects *all,
		    struct quota_share *share, bool local);
/*
 * Ends those that are in line or on their way to a name. What is connecting
 * goes on by itself.
 */
void connector_fini(struct connector *c);

/*
 * Connects @conn to its destination when its turn comes, or refuses it; at once
 * where it may not go.
 */
void connector_add(struct connector *c, struct conn *conn);
/* As conn_ops.moved tells: its connect() ended, or its socket was closed. */
void connector_moved(struct connector *c, struct conn *conn, int from);

/*
 * From now on there are threads for names of its peer, whatever others do, or as soon as others
 * have left so many. Until connector_releases(), which has to come before c->share is dropped.
 */
void connector_reserves(struct connector *c);
void connector_releases(struct connector *c);
/* Looks up @name for @conn, which is a connection to it, or a flow. 0 or -errno. */
int connector_asks(struct connector *c, const struct conn *conn,
		   const char *name, answered_fn answered, void *asker,
		   struct lookup **lookup);
/* For calls. A socket on its way to @to, or -errno. */
int connector_dial(struct connector *c, const struct sockaddr_storage *to);
/*
 * For outlets. May the flow @conn begin now? It is an open as a connect() is, but does not
 * wait: what its datagrams are worth would be gone. False: it is to be refused.
 */
bool connector_takes_flow(struct connector *c, const struct conn *conn);
/* A socket for datagrams, which counts in c->share once it is used; or -errno. */
int connector_udp(struct connector *c, int family);
/*
 * @fd is a pipe of the session, for which sockets to servers have left no descriptor: who has
 * most of them gives one up, be it this session. Pipes are bounded elsewhere (guests.h).
 */
void connector_makes_room(struct connector *c, int fd);
/*
 * For lent ports. Is there a descriptor for @fd, which is open? Who has most may have to
 * give one up. False: it is to be closed.
 */
bool connector_keeps(struct connector *c, int fd);
/* May its address have another one who came to a lent port? That one counts from now on. */
bool connector_takes_lent(const struct connector *c);
/* So many sockets more, or less, are there or on their way. */
void connector_counts(struct connector *c, int sockets);
void connector_counts_lent(struct connector *c);
/* @fd is on its way to where @conn wants, or there. */
void connector_connected(struct connector *c, struct conn *conn, int fd);
/* It cannot be reached, for the reason @err, an errno. */
void connector_failed(struct connector *c, struct conn *conn, int err);

/* "session 1: connection 7 to 192.0.2.1:80", for a line about it. */
const char *conn_text(const struct conn *c, char text[CONN_TEXT]);

#endif
