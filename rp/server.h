/* SPDX-License-Identifier: MIT */
/*
 * The remote proxy: sessions with those who came through the lobby, and
 * connections to servers for them.
 */
#ifndef TM3_RP_SERVER_H
#define TM3_RP_SERVER_H

#include <stdbool.h>
#include <stdio.h>

#include "../mux/base/host.h"
#include "../mux/base/ports.h"
#include "../mux/options/key_file.h"
#include "../mux/session/session.h"
#include "connects.h"
#include "lobby.h"
#include "options.h"
#include "quota.h"
#include "reach.h"
#include "reception.h"

struct server {
	struct engine *engine;
	const struct options *options;
	struct lobby lobby;	/* of the baseline */
	struct reception reception;	/* of the extension */
	struct connects connects;
	struct host host;
	struct reach reach;
	struct quota quota;
	struct list guests;	/* one a session */
	unsigned int sessions;
	bool stopping;
};

/*
 * Listens. Returns 0, or -errno after it said what is wrong, see listening_open().
 * Call server_close() in either case; then it may be opened again.
 */
int server_open(struct server *s, struct engine *engine,
		const struct options *options, struct ports *ports);

/* Says that it is ready, where, and who may come. */
void server_announce(struct server *s);

/*
 * SIGHUP: the options are others now. Sessions and connections stay, also those
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
