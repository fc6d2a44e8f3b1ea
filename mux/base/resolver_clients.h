/* SPDX-License-Identifier: MIT */
/*
 * Those for whom the resolver looks names up, and how many of its threads each may have.
 *
 * A thread cannot be taken back from a name that hangs. So those who are known before they ask
 * have a few threads reserved: nobody else has these, whether they are used or not. Where all
 * that there may be are used or reserved, whoever comes next waits in a line until a few are
 * free, and has them from then on. Meanwhile nobody else has more than the reserved ones.
 *
 * No threads, no lock: the resolver has both, and calls with its lock held.
 */
#ifndef TM3_RESOLVER_CLIENTS_H
#define TM3_RESOLVER_CLIENTS_H

#include <stdbool.h>

#include "list.h"

struct clients {
	struct list all;	/* whose turn is next is the first */
	struct list line;	/* who waits for a few threads; who came first is the first */
	unsigned int busy;	/* threads that have a name */
	unsigned int reserved;	/* beyond these, for clients that have fewer than a few */
	/* Threads: for whoever asks first; in all, with those for clients that have few. */
	unsigned int common, most;
	/* Of these one client may have so many, and has so few in any case. */
	unsigned int each, few;
};

/* There while something is reserved for it, or a name of it is queued or with a thread. */
struct client {
	struct list member;
	struct list place;	/* in the line */
	struct list queue;	/* of names; the resolver's */
	unsigned int busy;	/* threads */
	unsigned int wanted;	/* so often a few were reserved for it */
	bool has_few;		/* and so it has them */
	char who[];
};

void clients_init(struct clients *all, unsigned int threads);
/* Nobody has a thread or a name that is queued. */
void clients_fini(struct clients *all);
/* @few is the same each time. */
void clients_grant_each(struct clients *all, unsigned int few,
			unsigned int most);

/* NULL for want of memory. */
struct client *client_get(struct clients *all, const char *who);
/* Frees it if nothing of it is left. */
void client_put(struct client *c);

/* A few are for @c from now on, or as soon as they are free. It may be said several times, */
void client_reserve(struct clients *all, struct client *c);
/* and each time is taken back once. @c may be freed. */
void client_release(struct clients *all, struct client *c);

bool client_may_have_thread(const struct clients *all, const struct client *c);
/* NULL: nobody has a name queued, or whoever has one has enough threads. */
struct client *clients_next(const struct clients *all);
/* A thread has a name of @c, whose turn is over. */
void client_takes_thread(struct clients *all, struct client *c);
/* It has it no more. @c may be freed. */
void client_returns_thread(struct clients *all, struct client *c);

#endif
