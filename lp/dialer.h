/* SPDX-License-Identifier: MIT */
/*
 * Dials the pipes to RP, again and again until a session begins.
 *
 * A try looks the name up and goes through its addresses; with several paths (--path), once
 * for each of them, backups last, since a session may begin on any. At each it asks first
 * for the extension, with one pipe (opening.h). If RP does not speak that, it
 * connects all pipes at once for the baseline. EXTEND_NEVER and EXTEND_ALWAYS
 * leave out one or the other. What counts as "does not speak that": the port
 * refuses, or whoever is there does; also anything else that fails, and silence
 * for EXTEND_SILENT_MS, until this RP has said WELCOME once. From then on somebody
 * who makes the port silent cannot bring the baseline back. Several paths are not had in
 * the baseline: RP would take the pipes of each for those of another LP.
 *
 * The address that answered last is tried first. Where the port for the extension
 * is silent the others are knocked at (knock.h); if one of them is there first it is
 * tried now, and the silent one last. In the baseline nobody is knocked at: a single
 * connection would be a pipe of a group.
 *
 * Tries are BACKOFF_MIN_MS apart at first, doubling up to BACKOFF_MAX_MS, and up
 * to half of that more or less. After a session that lasted LASTED_MS they begin at
 * BACKOFF_MIN_MS again; a shorter one counts as a failed try.
 *
 * What is said of it is in complaints.h.
 */
#ifndef TM3_DIALER_H
#define TM3_DIALER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"
#include "../mux/pipe/conduit.h"
#include "../mux/pipe/transport.h"
#include "endpoint.h"

struct dialer;
struct log;
struct wire_hello;
struct wire_welcome;

enum {
	DIAL_MS = 5000,		/* one try at one address */
	BACKOFF_MIN_MS = 200,
	BACKOFF_MAX_MS = 5000,
	LASTED_MS = 1000,
	EXTEND_SILENT_MS = 2000,
};

enum extend { EXTEND_AUTO, EXTEND_ALWAYS, EXTEND_NEVER };

struct dialer_options {
	struct endpoint rp;
	uint16_t extended_port;
	enum extend extend;
	unsigned int each;	/* pipes on a path, unless it has a number of its own; */
	unsigned int pipes;	/* in all */
	const struct transport_set *transports;
	const struct path_set *paths;
	struct layers *layers;	/* of pipes of the extension, or NULL */
	bool listens;		/* RP is to be asked to listen */
};

/*
 * Both return 0 or -errno, and the sockets are the callee's from there on. What
 * becomes of them is told by dialer_lost().
 */
struct dialer_ops {
	/* @n connected sockets, the pipes of a session of the baseline. */
	int (*dialed)(void *owner, const int *fds, unsigned int n);
	/*
	 * @conduit, to @addr, is the first pipe of the session that @hello
	 * names.
	 */
	int (*welcomed)(void *owner, const struct wire_hello *hello,
			const struct wire_welcome *welcome,
			struct conduit conduit,
			const struct sockaddr_storage *addr);
	/* No session began, or one was lost: the next try is a while away. */
	void (*failed)(void *owner);
};

struct dialer *dialer_new(struct loop *loop, struct log *log,
			  const struct dialer_options *options,
			  const struct dialer_ops *ops, void *owner);
/* Whatever is under way is dropped. */
void dialer_free(struct dialer *d);

void dialer_start(struct dialer *d);
/* The pipes are gone; dial again. */
void dialer_lost(struct dialer *d, const char *why);

/* The same, at once: RP is there, and takes another session. */
void dialer_begin_anew(struct dialer *d, const char *why);
/* The network is another: what failed before may work now. */
void dialer_roam(struct dialer *d);
/* Sessions to come have pipes of these; so has one that is being opened. */
void dialer_take_layers(struct dialer *d, struct layers *layers);

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
