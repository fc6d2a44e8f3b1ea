/* SPDX-License-Identifier: MIT */
/*
 * The addresses where pipes come in, each for pipes of one kind.
 */
#ifndef TM3_RP_ENTRANCES_H
#define TM3_RP_ENTRANCES_H

#include <stdbool.h>
#include <sys/socket.h>

#include "../mux/base/list.h"
#include "../mux/base/listener.h"
#include "../mux/pipe/transport.h"

struct log;
struct loop;
struct incidents;

struct entrances {
	struct loop *loop;
	struct log *log;
	struct incidents *incidents;
	accepted_fn accepted;
	void *owner;		/* of the listeners */
	struct list all;
};

void entrances_init(struct entrances *e, struct loop *loop, struct log *log,
		    struct incidents *incidents, accepted_fn accepted,
		    void *owner);

/* Listen on @addr too, for pipes of @kind. 0 or -errno. */
int entrances_open(struct entrances *e, enum transport kind,
		   const struct sockaddr_storage *addr, socklen_t len);

/* The same with @fd, which listens already, and is theirs. */
int entrances_adopt(struct entrances *e, enum transport kind, int fd);

/*
 * The @i-th address as it was bound (a port of 0 has become a real one), and
 * what pipes are made of there; NULL behind the last.
 */
const struct sockaddr_storage *entrances_address(const struct entrances *e,
						 unsigned int i,
						 enum transport *kind);

/*
 * Is TCP's port at @dst, whose address is one of this host's, where pipes come
 * in?
 */
bool entrances_listen_at(const struct entrances *e,
			 const struct sockaddr_storage *dst);

/* Did descriptors or memory run out at one of them a moment ago? */
bool entrances_are_short(const struct entrances *e);

/* Stop listening. */
void entrances_close(struct entrances *e);

#endif
