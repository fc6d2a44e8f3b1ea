/* SPDX-License-Identifier: MIT */
/*
 * Where pipes come in and wait until they are as many as a session needs.
 *
 * In baseline a pipe says nothing about itself, so its address must do: the
 * first N undecided pipes from one address form a session, later ones start the
 * next. Until a group is complete nothing is read from its pipes; one
 * that is closed meanwhile leaves. A group that stays incomplete is closed.
 *
 * All of it is bounded: waiting pipes by LOBBY_WAITING_MAX, sessions by
 * ops->room(); when descriptors run out the listeners pause for a moment.
 */
#ifndef TM3_RP_LOBBY_H
#define TM3_RP_LOBBY_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/list.h"
#include "../mux/base/loop.h"
#include "../mux/pipe/transport.h"

enum {
	LOBBY_WAITING_MAX = 1024,	/* pipes; more are reset */
	LOBBY_PATIENCE_S = 10,		/* until a group must be complete */
};

struct access;
struct lobby;
struct log;

struct lobby_ops {
	/* Is there room for another session? */
	bool (*room)(struct lobby *l);
	/* @n pipes of one peer, open and non-blocking: theirs from now on. */
	void (*complete)(struct lobby *l, const struct sockaddr_storage *peer,
			 const int *fds, unsigned int n);
};

struct lobby {
	const struct lobby_ops *ops;
	struct loop *loop;
	struct log *log;
	const struct access *access;
	unsigned int pipes;	/* of a session */
	int64_t patience;	/* ns, LOBBY_PATIENCE_S but in tests */
	struct list entrances;	/* listeners */
	struct list groups;
	unsigned int waiting;	/* pipes in all groups */
};

void lobby_init(struct lobby *l, const struct lobby_ops *ops, struct loop *loop,
		struct log *log, const struct access *access,
		unsigned int pipes);

/* Listen on @addr too, for pipes of @kind. 0 or -errno. */
int lobby_open(struct lobby *l, enum transport kind,
	       const struct sockaddr_storage *addr, socklen_t len);

/*
 * The @i-th address as it was bound (a port of 0 has become a real one), and
 * what pipes are made of there; NULL behind the last.
 */
const struct sockaddr_storage *lobby_address(const struct lobby *l,
					     unsigned int i,
					     enum transport *kind);

/*
 * Is TCP's @port of the address @dst, which is one of this host's, where pipes
 * come in?
 */
bool lobby_listens_at(const struct lobby *l, const uint8_t dst[4],
		      uint16_t port);

/* Stop listening, and close every waiting pipe. */
void lobby_close(struct lobby *l);

/* Who waits, for a person. */
void lobby_print(const struct lobby *l, FILE *out);

#endif
