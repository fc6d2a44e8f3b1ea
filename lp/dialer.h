/* SPDX-License-Identifier: MIT */
/*
 * Dials the pipes to RP, again and again until all of them are up.
 *
 * A try looks the name up, connects all pipes to its first address at once,
 * and goes on to the next address when that fails. Tries are BACKOFF_MIN_MS
 * apart at first, doubling up to BACKOFF_MAX_MS, and up to half of that more or
 * less. After a session that lasted LASTED_MS they begin at BACKOFF_MIN_MS
 * again; a shorter one counts as a failed try.
 *
 * It speaks once when RP is not there or went away, again when the reason is
 * another one, and when the pipes are up.
 */
#ifndef TM3_DIALER_H
#define TM3_DIALER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"
#include "../mux/pipe/transport.h"
#include "endpoint.h"

struct dialer;
struct log;

enum {
	DIAL_MS = 5000,		/* one try at one address */
	BACKOFF_MIN_MS = 200,
	BACKOFF_MAX_MS = 5000,
	LASTED_MS = 1000,
};

/*
 * @n connected sockets, the callee's from here on. Returns 0 or -errno. What
 * becomes of them is told by dialer_lost().
 */
typedef int (*dialed_fn)(void *owner, const int *fds, unsigned int n);

struct dialer *dialer_new(struct loop *loop, struct log *log,
			  const struct endpoint *rp,
			  const struct transport_set *transports,
			  unsigned int pipes, dialed_fn dialed, void *owner);
/* Whatever is under way is dropped. */
void dialer_free(struct dialer *d);

void dialer_start(struct dialer *d);
/* The pipes are gone; dial again. */
void dialer_lost(struct dialer *d, const char *why);

/* "127.0.0.1:6000", as RP was named. */
const char *dialer_peer(const struct dialer *d);
/* Is @addr where the pipes go, or would go? */
bool dialer_goes_to(const struct dialer *d,
		    const struct sockaddr_storage *addr);
/*
 * A connection to RP came back to LP. Returns whether it must be a pipe in the
 * making: then the dialer names that as the reason why there are no pipes.
 */
bool dialer_came_back(struct dialer *d);
/* One line for a person. */
void dialer_print(const struct dialer *d, FILE *out);

#endif
