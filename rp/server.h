/* SPDX-License-Identifier: MIT */
/*
 * The remote proxy: pipes come in through lobby and reception, and whoever has them
 * becomes a guest, with a session of its own.
 */
#ifndef TM3_RP_SERVER_H
#define TM3_RP_SERVER_H

#include <stdbool.h>
#include <stdio.h>

#include "../mux/base/ports.h"
#include "../mux/session/session.h"
#include "guests.h"
#include "lobby.h"
#include "options.h"
#include "reception.h"

struct server {
	struct engine *engine;
	const struct options *options;
	struct lobby lobby;	/* of the baseline */
	struct reception reception;	/* of the extension */
	struct guests guests;
	bool stopping;
};

/*
 * Listens. Returns 0, or -errno after it said what is wrong, see listening_open().
 * Call server_close() in either case; then it may be opened again.
 */
int server_open(struct server *s, struct engine *engine,
		const struct options *options, struct ports *ports);

/*
 * Begins to serve, and says that it is ready, where, and who may come. 0, or -errno
 * after it said what is wrong.
 */
int server_start(struct server *s);

/*
 * SIGHUP, in a halt of the engine: the options are others now. Sessions and connections stay, also those
 * that could not begin any more.
 */
void server_reload(struct server *s);

/* Ends all in order, and then the loop. */
void server_stop(struct server *s);
/* Stops listening, if it still does. */
void server_close(struct server *s);

/* Sessions, pipes, connections, and who waits, for a person. */
void server_print(struct server *s, FILE *out);

#endif
