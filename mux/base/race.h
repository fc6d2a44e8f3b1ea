/* SPDX-License-Identifier: MIT */
/*
 * One connect() to somebody who has several addresses, after RFC 8305: they
 * are tried one after the other, a family after the other, RACE_STEP_MS apart
 * or as soon as all those before have failed. The first that connects wins, and
 * the others are closed.
 *
 * How long it may take in all is the owner's to say: race_stop().
 */
#ifndef TM3_RACE_H
#define TM3_RACE_H

#include <sys/socket.h>

#include "loop.h"
#include "resolver.h"

enum { RACE_STEP_MS = 250, RACE_MAX = LOOKUP_ADDRESSES };

struct race;

struct race_ops {
	/* A socket on its way to @to, or -errno. */
	int (*dial)(struct race *r, const struct sockaddr_storage *to);
	/* One of these was closed. */
	void (*closed)(struct race *r);
	/* @fd is connected, and the callee's. The race has ended. */
	void (*won)(struct race *r, int fd);
	/* None could be reached, for the reason @err, an errno. */
	void (*lost)(struct race *r, int err);
};

struct runner {
	struct race *race;
	struct watch watch;
};

struct race {
	const struct race_ops *ops;
	struct loop *loop;
	struct timer step;
	unsigned int n, begun, running;
	int err;		/* what tells most of why some failed; or 0 */
	struct sockaddr_storage addr[RACE_MAX];
	struct runner runner[RACE_MAX];
};

/* Among @n addresses, RACE_MAX at most, with their ports. */
void race_init(struct race *r, const struct race_ops *ops, struct loop *loop,
	       const struct sockaddr_storage *addr, unsigned int n);
/* May be won or lost at once. */
void race_start(struct race *r);
/* Closes what is under way. Neither won() nor lost() is called. */
void race_stop(struct race *r);

#endif
