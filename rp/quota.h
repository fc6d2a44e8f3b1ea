/* SPDX-License-Identifier: MIT */
/*
 * How many sessions each peer has, so that none can shut out all others. A peer is who
 * shows a key, wherever from, and without keys whom an address counts for (payer.h).
 *
 * A peer at its own limit gets no more sessions. When there are as many as there may
 * be of all peers together, one has to go for a new one, of a peer that has fewer
 * after that: the oldest idle session of the peer that has most (it has neither connections
 * nor, with pipes, lent ports), or if nobody is idle
 * the oldest one of the peer that has most. Where nobody has more than one, an
 * idle one still goes for a newcomer who has none: nothing is lost with it.
 *
 * Sockets to servers, of which there are as many as descriptors, go the same way. So do
 * pipes: if there are too many of all peers for a new session's, the oldest session, idle if
 * there is one, of the peer that has most pipes goes, as long as it has more than the newcomer
 * would have. A session counts with the pipes that it may have, not with those that it has.
 *
 * What its sessions have charged, and what they take of the loop's time, count together.
 */
#ifndef TM3_RP_QUOTA_H
#define TM3_RP_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/budget.h"
#include "../mux/base/list.h"
#include "../mux/session/hoard.h"

struct quota_address;

struct quota_share {		/* of one session, embedded in what owns it */
	struct quota_address *address;	/* NULL: it does not count */
	struct list member;
	unsigned int pipes;	/* that it may have; its owner sets it before quota_take() */
	unsigned int sockets;	/* to servers; its owner counts them, */
	unsigned int lent;	/* and of them, those of who came to lent ports */
};

struct quota {
	struct hoard *hoard;	/* of the process, */
	size_t hoard_each;	/* and of it, of one peer */
	struct budgets *budgets;	/* of the loop's time; NULL: peers have none here */
	unsigned int max, max_each;
	unsigned int sessions;
	unsigned long pipes, max_pipes;	/* ULONG_MAX, or what the owner sets */
	struct list addresses;
	bool (*is_idle)(const struct quota_share *share);
	bool (*give_up)(struct quota_share *share);
};

/*
 * @hoard: half of it is what one address may have; NULL: what they have counts
 * elsewhere. @budgets: as there. @give_up: closes the oldest socket of @share, and says whether it had one.
 */
void quota_init(struct quota *q, struct hoard *hoard, struct budgets *budgets,
		unsigned int max, unsigned int max_each,
		bool (*is_idle)(const struct quota_share *share),
		bool (*give_up)(struct quota_share *share));

/* Is there no room for another session, of @pipes? Then is_idle() may be asked. */
bool quota_is_full(const struct quota *q, unsigned int pipes);
/* Other limits from now on, @all bytes for the hoard; no session has to go for them. */
void quota_set(struct quota *q, size_t all, unsigned int max,
	       unsigned int max_each);

/*
 * Why there is no room for another session of @peer, who has shown the key named @key (""
 * without keys), or NULL. It may still take that @victim, if it is not NULL then, is dropped
 * before.
 */
const char *quota_objection(struct quota *q,
			    const struct sockaddr_storage *peer,
			    const char *key, struct quota_share **victim);

/* The same of @pipes that it has; several may have to go, so it is to be asked again. */
const char *quota_objection_to_pipes(struct quota *q,
				     const struct sockaddr_storage *peer,
				     const char *key, unsigned int pipes,
				     struct quota_share **victim);

/* Counts a session, or no longer (it may be said twice). 0 or -ENOMEM. */
int quota_take(struct quota *q, struct quota_share *share,
	       const struct sockaddr_storage *peer, const char *key);
void quota_drop(struct quota *q, struct quota_share *share);

/* What the sessions of the address of @share have charged, until it is dropped. */
struct hoard *quota_hoard(const struct quota_share *share);
/* What they may take of the loop's time, as long. */
struct budget *quota_budget(const struct quota_share *share);

/* A name for whom @share counts, also for what outlives its sessions; "": for nobody. */
const char *quota_who(const struct quota_share *share);
/* How many sessions the address of @share has, */
unsigned int quota_of_address(const struct quota_share *share);
/* and how many sockets all of these. */
unsigned int quota_sockets(const struct quota_share *share);
unsigned int quota_lent(const struct quota_share *share);
/*
 * There is no descriptor for a socket of @share, which is counted: of the address
 * that has most sockets, if that is more than the one of @share has, the session
 * that has most gives one up. Else, and in any case where all is to stay @at_home, it
 * is a session of the same address, if that has more than @share. False: nobody does.
 */
bool quota_relieves(struct quota *q, const struct quota_share *share,
		    bool at_home);

#endif
