/* SPDX-License-Identifier: MIT */
/*
 * Where pipes of the extension come in, until each has said by a HELLO which
 * session it is of. So many local proxies may share an address, and each may have
 * as many pipes as it likes.
 *
 * A pipe that says none within RECEPTION_PATIENCE_S is closed, and so is one that says
 * more than a HELLO can be (greeting.h). Of more than RECEPTION_EACH of one peer
 * (payer.h) that have not said it yet its oldest is closed; of more than RECEPTION_MAX in
 * all one goes as places.h says. Whose HELLO is there and was not read yet does not go
 * while there is another one.
 *
 * With keys each has a handshake first, whose cost is rp's. What they say is read in the order
 * in which it came, for RECEPTION_TURN_US in a round; then sessions have their turn.
 */
#ifndef TM3_RP_RECEPTION_H
#define TM3_RP_RECEPTION_H

#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/list.h"
#include "../mux/base/loop.h"
#include "../mux/pipe/conduit.h"
#include "entrances.h"
#include "places.h"

enum {
	RECEPTION_MAX = 1024,	/* pipes */
	RECEPTION_EACH = 64,
	RECEPTION_FAIR = 8,	/* see places.h */
	RECEPTION_PATIENCE_S = 5,
	RECEPTION_TURN_US = 100,
};

struct access;
struct keys;
struct log;
struct reception;
struct incidents;
struct wire_hello;

/* @conduit is a pipe of @peer whose HELLO was read: the callee's from now on. */
typedef void (*greeted_fn)(struct reception *r,
			   const struct sockaddr_storage *peer,
			   const struct wire_hello *hello,
			   struct conduit conduit);

struct reception {
	struct loop *loop;
	struct log *log;
	struct incidents *incidents;
	const struct access *access;
	struct layers *layers;	/* that pipes have, or NULL */
	greeted_fn greeted;
	int64_t patience;	/* ns, RECEPTION_PATIENCE_S but in tests */
	struct entrances entrances;	/* to be opened by the owner */
	struct list callers;	/* the oldest first */
	struct list due;	/* of these, who said something that is to be read, */
	struct task turn;	/* then */
	struct places waiting;
	unsigned int max;	/* RECEPTION_MAX, or less */
};

void reception_init(struct reception *r, greeted_fn greeted, struct loop *loop,
		    struct log *log, struct incidents *incidents,
		    const struct access *access);
/* Closes whoever waits and has shown one of these keys, or is about to. */
void reception_dismiss(struct reception *r, const struct keys *gone);
/* Stops listening, and closes whoever waits. */
void reception_close(struct reception *r);
/* Who waits, for a person. */
void reception_print(const struct reception *r, FILE *out);

#endif
