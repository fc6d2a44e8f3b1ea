/* SPDX-License-Identifier: MIT */
/*
 * Names to addresses without delaying the loop: getaddrinfo() in a few
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
 * Where names that hang have all threads, each may be granted a few more: they are started for
 * whoever has less, and end when they have nothing to do. They can be reserved for somebody,
 * see resolver_clients.h. Only what a thread has already is shared with others: what is in line
 * may stand behind names that hang.
 *
 * At the end threads that hang are left behind: what they share with the
 * resolver goes with the last of them.
 */
#ifndef TM3_RESOLVER_H
#define TM3_RESOLVER_H

#include <stdbool.h>

#include "answer.h"
#include "loop.h"

enum {
	LOOKUPS_MAX = 4096,	/* waiting for an answer: past it, -EAGAIN */
	LOOKUP_SECONDS = 10,
	/* How long the end waits for threads that are nearly done. */
	RESOLVER_END_MS = 100,
};

struct lookup;
struct resolver;

typedef void (*answered_fn)(void *asker, const struct answer *answer);

struct resolver *resolver_new(struct loop *loop, unsigned int threads);
/* Before anybody asks: names of one and the same have @each threads at most. */
void resolver_limit_each(struct resolver *r, unsigned int each);
/*
 * The same, with @few threads in any case: where others have those of resolver_new(), further ones
 * are started, until there are @most in all. It may be called again with another @most.
 */
void resolver_grant_each(struct resolver *r, unsigned int few,
			 unsigned int most);
/*
 * These @few are reserved for names of @who, until resolver_release() was called as often as this.
 * 0 or -ENOMEM.
 */
int resolver_reserve(struct resolver *r, const char *who);
void resolver_release(struct resolver *r, const char *who);

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
/*
 * Is it in line since its owner may have no more threads now than @own, which have names of the
 * same owner? Fewer than the @few of above: it is names of others that it waits for.
 */
bool resolver_waits(const struct lookup *lookup, unsigned int *own);
void resolver_cancel(struct lookup *lookup);

/* For a person; never NULL. */
const char *resolver_error_text(int error);

#endif
