/* SPDX-License-Identifier: MIT */
/*
 * A listening socket and what accepts from it.
 *
 * It rests while it is held (the session has no room), and for ACCEPT_REST_MS
 * when the process has no descriptor left: connections wait in the kernel then,
 * and a line says so.
 */
#ifndef TM3_LISTENER_H
#define TM3_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"

struct listener;
struct log;

enum {
	ACCEPT_BATCH = 64,	/* connections taken in one round */
	ACCEPT_REST_MS = 100,
};

/* @fd: a new connection, non-blocking, the callee's from here on. */
typedef void (*accepted_fn)(struct listener *l, int fd);

/* NULL and errno on failure. */
struct listener *listener_new(struct loop *loop, struct log *log,
			      const struct sockaddr_storage *addr,
			      socklen_t len, accepted_fn accepted,
			      void *owner);
/* Not from within accepted(). */
void listener_free(struct listener *l);

/* Do not accept, or do again. May be said at any time. */
void listener_hold(struct listener *l, bool held);

void *listener_owner(const struct listener *l);
/* The address it is bound to. */
const struct sockaddr_storage *listener_addr(const struct listener *l);

#endif
