/* SPDX-License-Identifier: MIT */
/*
 * A guest: a local proxy that has its session with rp, and what its worker does for that
 * session: connections and flows to servers, lent ports, who may add a pipe to it.
 *
 *	guests_admit()		there is a place for it (guests.h), in the first thread
 *	guest_begin()		its worker is given its pipes, and makes its session
 *	guest_join()		its worker is given another pipe
 *	...			its session ends; the first thread is told, and frees it
 *
 * So between guest_begin() and that the first thread looks at what is the worker's in a
 * halt alone (base/halt.h). There is no session then if it has ended, and that was not
 * heard of yet.
 */
#ifndef TM3_RP_GUEST_H
#define TM3_RP_GUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/inbox.h"
#include "../mux/base/list.h"
#include "../mux/options/key_file.h"
#include "../mux/pipe/conduit.h"
#include "../mux/settings/limits.h"
#include "../mux/wire/wire_ext.h"
#include "connects.h"
#include "doors.h"
#include "lent_ports.h"
#include "outlet.h"
#include "quota.h"

struct guests;
struct session;
struct worker;

struct guest {
	struct guests *all;
	struct worker *worker;
	unsigned int number;	/* of its session */
	struct sockaddr_storage peer;	/* where it began */
	struct key key;		/* whose it is; the name is "": pipes have none */
	struct errand errand;	/* it begins, and later that it has left */
	struct wire_hello hello;	/* of its first pipe, in the extension, */
	struct conduit conduit;		/* and that pipe; */
	int fds[PIPES_MAX];		/* in the baseline all pipes, */
	unsigned int nfds;		/* so many */
	/* The first thread's: */
	struct list member;
	struct quota_share place;
	int64_t began_at;
	/* The worker's: */
	struct session *session;
	bool told;		/* of its beginning, in the log: so of its end, too */
	struct doors doors;
	struct connector connector;
	struct outlets outlets;
	struct lent_ports lent;
	struct quota_share share;
	struct errand alone;	/* it has no pipe; */
	bool tells_alone;	/* on its way */
	bool asked;		/* what it wanted of others is being tried */
};

/* Its session begins, in its worker, with what it has of pipes. */
void guest_begin(struct guest *guest);
/*
 * Another pipe of @peer, which said @hello, wants to join the session of @guest; it is sent
 * away if it may not. If there is no session any more, that comes back to all->stray().
 */
void guest_join(struct guest *guest, const struct sockaddr_storage *peer,
		const struct wire_hello *hello, struct conduit conduit);

/* In a halt, or by its worker: is the key that it has shown still one? */
bool guest_may_stay(const struct guest *guest);
/* In a halt: has it neither connections nor, with pipes, lent ports? */
bool guest_is_idle(const struct guest *guest);
/* A connection or a lent port of it goes, for one of an address that has fewer. */
bool guest_gives_up(struct guest *guest);
/* Its session counts for its peer no longer, in descriptors, memory or time. */
void guest_drop_share(struct guest *guest);

#endif
