/* SPDX-License-Identifier: MIT */
/*
 * A listening socket, and what accepts connections from it.
 *
 * Connections are accepted in batches, so that whoever opens many of them does
 * not keep the loop from everything else: a round accepts so many, and none after
 * LISTENER_TURN_US. Nothing is accepted while the owner
 * has paused the listener, nor for LISTENER_BACKOFF_MS after descriptors or
 * memory ran out, which is logged once in a while. Connections wait in the
 * kernel's queue meanwhile.
 */
#ifndef TM3_LISTENER_H
#define TM3_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "loop.h"

struct listener;
struct log;
struct incidents;

enum {
	LISTENER_BATCH = 64,	/* connections that one round accepts, */
	LISTENER_TURN_US = 100,	/* or as many as are begun within this time */
	LISTENER_BACKOFF_MS = 200,
};

/* @fd is a new connection from @peer, non-blocking. It belongs to the callee. */
typedef void (*accepted_fn)(struct listener *l, int fd,
			    const struct sockaddr_storage *peer);

/*
 * Listens with @fd, a socket that is not bound yet, on @addr. The listener owns
 * @fd, which is closed if this fails. A negative @fd is the -errno of whoever
 * could not make it. Returns NULL and sets errno on failure.
 */
struct listener *listener_new(struct loop *loop, struct log *log, int fd,
			      const struct sockaddr_storage *addr,
			      socklen_t len, accepted_fn accepted,
			      void *owner);
/*
 * The same with @fd, which listens already: on a path, or since before this process. The
 * listener owns it, and closes it if this fails.
 */
struct listener *listener_adopt(struct loop *loop, struct log *log, int fd,
				accepted_fn accepted, void *owner);
/* Must not be called by accepted(). NULL is allowed. */
void listener_free(struct listener *l);

/*
 * From now on @prepare sets the options of each accepted connection. Where the listening
 * socket had its options before it listened that is not needed: Linux hands them on.
 */
void listener_prepares(struct listener *l, void (*prepare)(int fd));

/* Shortages count as @kind there, and are said as often as it says. */
void listener_counts_in(struct listener *l, struct incidents *incidents,
			unsigned int kind);

/* Stops accepting, or starts again. May be called at any time. */
void listener_pause(struct listener *l, bool paused);

/* A round now: those that wait need not until the loop comes to them. Not by accepted(). */
void listener_look(struct listener *l);

/* Did descriptors or memory run out a moment ago? */
bool listener_is_short(const struct listener *l);

void *listener_owner(const struct listener *l);
/* The address it is bound to: a port of 0 has become a real one. */
const struct sockaddr_storage *listener_addr(const struct listener *l);

#endif
