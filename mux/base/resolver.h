/* SPDX-License-Identifier: MIT */
/*
 * Names to addresses without holding up the loop: getaddrinfo() in a few
 * threads, answers back in the loop.
 *
 * A lookup is answered exactly once, from the loop and never from within
 * resolver_ask(), unless it is cancelled first. One that takes longer than
 * LOOKUP_SECONDS is answered EAI_AGAIN; its thread stays busy until
 * getaddrinfo() lets go of it. Who asks for a name that is being looked up
 * shares the answer: a page's hundred connections to one host are one question.
 *
 * Those for whom names are looked up take turns. Each may be given a part of the threads; one
 * that is kept counts until getaddrinfo() lets go of it, whether anybody still waits or not.
 * Only what a thread has already is shared with others: what is in line
 * may stand behind names that hang.
 *
 * At the end threads that hang are left behind: what they share with the
 * resolver goes with the last of them.
 */
#ifndef TM3_RESOLVER_H
#define TM3_RESOLVER_H

#include <stdbool.h>
#include <sys/socket.h>

#include "loop.h"

enum {
	LOOKUPS_MAX = 4096,	/* waiting for an answer: past it, -EAGAIN */
	LOOKUP_SECONDS = 10,
	/*
	 * Addresses that are kept of a name: so many IPv4 and so many IPv6
	 * ones, or many of one family would hide the other.
	 */
	LOOKUP_OF_A_FAMILY = 8,
	LOOKUP_ADDRESSES = 2 * LOOKUP_OF_A_FAMILY,
	/* How long the end waits for threads that are nearly done. */
	RESOLVER_END_MS = 100,
};

struct lookup;
struct resolver;

struct answer {
	int error;		/* of getaddrinfo(): 0 or EAI_* */
	unsigned int count;	/* addresses; at least one unless error */
	struct sockaddr_storage addr[LOOKUP_ADDRESSES];	/* port 0 */
};

typedef void (*answered_fn)(void *asker, const struct answer *answer);

struct resolver *resolver_new(struct loop *loop, unsigned int threads);
/* Before anybody asks: names of one and the same have @each threads at most. */
void resolver_limit_each(struct resolver *r, unsigned int each);

/* No lookup may be under way but cancelled ones. */
void resolver_free(struct resolver *r);

/*
 * Looks up @name in @family (AF_UNSPEC: any). Returns 0 and the lookup in
 * @lookup, or -errno.
 */
int resolver_ask(struct resolver *r, const char *name, int family,
		 answered_fn answered, void *asker, struct lookup **lookup);
/* The same for @who, a name for whoever it is; above it is for "". */
int resolver_ask_for(struct resolver *r, const char *who, const char *name,
		     int family, answered_fn answered, void *asker,
		     struct lookup **lookup);
/* Is it in line since names of the same have as many threads as they may have? */
bool resolver_is_held(const struct lookup *lookup);
void resolver_cancel(struct lookup *lookup);

/* For a person; never NULL. */
const char *resolver_error_text(int error);

#endif
