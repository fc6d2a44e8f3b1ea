/* SPDX-License-Identifier: MIT */
/*
 * The local proxy put together: ways in for applications (README.md lists them), the one way
 * out (remote_forward), one dialer, and the session over its pipes while there is one. A session
 * of the extension that lacks pipes gets them from the joiner of their path.
 *
 * A way in takes a connection, finds out where it wants to go, and hands it over with
 * proxy_open(). Datagrams go by proxy_open_flow(). While there is no session nobody waits:
 * connections are reset, or told so where the way in has words for it.
 */
#ifndef TM3_PROXY_H
#define TM3_PROXY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/host.h"
#include "../mux/base/ports.h"
#include "../mux/wire/destination.h"
#include "control_socket.h"
#include "icmp.h"
#include "joiner.h"
#include "steering.h"
#include "ways_in.h"

struct conn;
struct dialer;
struct engine;
struct flow;
struct flow_ops;
struct log;
struct loop;
struct options;
struct remote_forwards;
struct resolver;
struct session;

struct proxy {
	struct engine *engine;
	struct loop *loop;
	struct log *log;
	const struct options *options;
	struct resolver *names;
	struct dialer *dialer;
	struct joiner joiner[PATHS_MAX];	/* of each path */
	unsigned int njoiners;
	struct path_control control;	/* of its paths, */
	struct control_socket control_socket;	/* and who says what */
	struct host host;		/* this one; it may roam */
	struct session *session;	/* NULL: no pipes */
	bool stopping;
	bool full;			/* no room */
	bool begins_anew;		/* the next session is on its way */
	int64_t said_at;		/* when that was logged; 0 never */

	struct ways_in ways_in;
	struct remote_forwards *remote;
	struct icmp icmp;		/* what programs of --tproxy are told by */
	struct steering steering;
};

struct proxy *proxy_new(struct engine *engine, const struct options *options);
/* What the engine's layers are from now on; a session that there is keeps those that it has. */
void proxy_take_layers(struct proxy *p, struct layers *layers);
/* Those of the session that there is; or NULL. */
const struct layers *proxy_layers_in_use(const struct proxy *p);
void proxy_free(struct proxy *p);

/*
 * Listens on all ways in. 0, or -errno after it said what is wrong; -EADDRNOTAVAIL
 * is not said: the address is in @ports then, because it may come later. A way in takes
 * the socket in @ports that has its option's name (socks, redirect, forward), or
 * its address.
 */
int proxy_listen_all(struct proxy *p, struct ports *ports);
/*
 * Says what is listened on, and dials. Goes on dialling whenever the pipes are
 * lost.
 */
void proxy_start(struct proxy *p);
/* End in order; then the loop stops. */
void proxy_stop(struct proxy *p);
void proxy_print(struct proxy *p, FILE *out);
/* In a few words: are there pipes? */
void proxy_status(const struct proxy *p, char *text, size_t len);

/* --- for the ways in --- */

/* 0: proxy_open() can work; -ENETDOWN: no pipes; -EAGAIN: no room. */
int proxy_ready(const struct proxy *p);
/*
 * The same for this destination. -EAFNOSUPPORT: rp cannot be told of it, because
 * the baseline carries IPv4 addresses alone.
 */
int proxy_ready_for(const struct proxy *p, const struct destination *to);
/* Does rp look names up? Else who has one must do it. */
bool proxy_carries_names(const struct proxy *p);
/* In which family (AF_...) names are worth looking up here. */
int proxy_family(const struct proxy *p);

/*
 * Relay @fd to @to. It is the engine's on success; else it still is the
 * caller's. @name: what was asked for, where @to was looked up; NULL: nothing, or
 * @to has it.
 */
int proxy_open(struct proxy *p, int fd, const struct destination *to,
	       const char *name);

/* Does rp carry flows of datagrams? */
bool proxy_carries_flows(const struct proxy *p);
/*
 * As flow_open(). A flow of --tproxy ends to make room for this one. NULL: there is none
 * even so, or proxy_no_flows() tells why.
 */
struct flow *proxy_open_flow(struct proxy *p, const struct destination *to,
			     const struct flow_ops *ops, void *owner);
/* Why there is no flow, for the log. */
const char *proxy_no_flows(const struct proxy *p);

/*
 * Shall SOCKS5 be answered when rp has, and can rp be asked? Then proxy_ask() opens
 * a connection without a socket for @asker, whose client is @fd, and who is told by
 * handshake_answered() or handshake_lost() what comes of it, unless it has cleared conn->asker.
 * NULL: there is no room.
 */
bool proxy_can_ask(const struct proxy *p);
struct conn *proxy_ask(struct proxy *p, int fd, const struct destination *to,
		       const char *name, void *asker);

#endif
