/* SPDX-License-Identifier: MIT */
/*
 * All that applications come in by: what is listened on, for what, and what the log
 * says of it. A way in takes the socket that was handed over with its option's name
 * (socks, redirect, forward), or its address.
 */
#ifndef TM3_WAYS_IN_H
#define TM3_WAYS_IN_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/listener.h"

struct forward;
struct handshakes;
struct options;
struct ports;
struct proxy;
struct tproxy;
struct udp_forward;

/* What an address is listened on for, in the words of the log. */
struct purpose {
	const char *option;	/* which one sets the address: "--forward" */
	const char *what;	/* in front of the address: "forwarding" */
	const char *to;		/* or NULL: where its connections go */
	bool keeps_syns;	/* for origin.h */
	void (*prepare)(int fd);	/* NULL: conn_prepare() is all */
};

struct way_in_open {
	struct listener *listener;
	struct purpose purpose;
};

struct ways_in {
	struct way_in_open *open;
	unsigned int n;
	struct ports *ports;	/* while they are opened */
	int listen_err;		/* of the one that failed, */
	struct sockaddr_storage listen_addr;	/* and where that was */
	struct handshakes *socks;	/* or NULL */
	struct forward **forwards;
	unsigned int nforwards;
	struct udp_forward **udp_forwards;
	unsigned int nudp_forwards;
	struct tproxy **tproxies;
	unsigned int ntproxies;
};

/* Room for as many as there are options. 0 or -ENOMEM; fini() in either case. */
int ways_in_init(struct ways_in *w, const struct options *o);
void ways_in_fini(struct ways_in *w);

/* All of them, as proxy_listen_all() says. */
int ways_in_open(struct proxy *p, struct ports *ports);
void ways_in_close(struct ways_in *w);

/* Who came, and was not accepted yet, is now. */
void ways_in_look(const struct ways_in *w);
/* Nothing is accepted while there is no room. */
void ways_in_pause(const struct ways_in *w, bool paused);
/* Who waits for an answer of rp is told that there is none: the pipes are gone. */
void ways_in_drop_waiting(const struct ways_in *w);

/* Says what is listened on. */
void ways_in_announce(const struct proxy *p);
void ways_in_print(const struct ways_in *w, FILE *out);

/* For each of them: listens on @addr. False on failure, which was said. */
bool ways_in_listen(struct proxy *p, const struct sockaddr_storage *addr,
		    socklen_t len, accepted_fn accepted, void *owner,
		    const struct purpose *purpose);

#endif
