/* SPDX-License-Identifier: MIT */
/*
 * The ports that rp listens on for one session, at its local proxy's wish and where
 * --permit-listen covers it (permits.h). What is accepted there goes to the local proxy.
 *
 * A port is lent until the session ends or, after SIGHUP, until no --permit-listen covers
 * it any more, or until descriptors are short and its session has most of them, and no
 * connections. Who comes while the session has no pipes for long, or no room, is reset.
 * What is accepted counts among the session's connections, memory and sockets; of those that come in a second
 * --max-opens are taken, besides those that the session opens itself. To listen is tried
 * LISTENERS_MAX times in a second.
 */
#ifndef TM3_RP_LENT_PORTS_H
#define TM3_RP_LENT_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/list.h"
#include "../mux/wire/destination.h"

struct connector;
struct lent_ports;
struct options;
struct session;

/*
 * @addr, wanted for @listener, is in use: does another session of the same owner give it
 * back? 0: it did; EADDRINUSE: none does; EINPROGRESS: they are asked, and then
 * lent_ports_try() is called.
 */
typedef int (*gives_way_fn)(struct lent_ports *l, uint16_t listener,
			    const struct sockaddr_storage *addr);

struct lent_ports {
	struct connector *connector;	/* of the session: its sockets and limits */
	const struct options *options;
	gives_way_fn gives_way;
	struct session *session;	/* from the first wish on */
	struct list all;
	int64_t open_at;	/* when the next is due, if they come evenly, */
	int64_t try_at;		/* and the next try to listen */
};

void lent_ports_init(struct lent_ports *l, struct connector *connector,
		     const struct options *options, gives_way_fn gives_way);
void lent_ports_fini(struct lent_ports *l);

/* As role->listen(): @s hears by LISTENING what comes of it. */
void lent_ports_open(struct lent_ports *l, struct session *s, uint16_t listener,
		     const struct destination *at);
/* Once more, for a wish that may be granted. */
void lent_ports_try(struct lent_ports *l, uint16_t listener,
		    const struct sockaddr_storage *addr);
/* Takes back what is listened on at @addr. False: nothing is. */
bool lent_ports_give_way(struct lent_ports *l,
			 const struct sockaddr_storage *addr);
/* Takes one back for its descriptor. False: none is lent. */
bool lent_ports_give_up(struct lent_ports *l);
/* Other --permit-listen count from now on. */
void lent_ports_review(struct lent_ports *l);

/* Is one lent, to who has pipes? */
bool lent_ports_serve(const struct lent_ports *l);
void lent_ports_print(const struct lent_ports *l, FILE *out);

#endif
