/* SPDX-License-Identifier: MIT */
/*
 * Serves the figures of a proxy to Prometheus by HTTP: GET /metrics, one answer
 * a connection.
 *
 * Who asks can take little: METRICS_CLIENTS connections, the oldest of which goes for
 * a newcomer; a request of METRICS_REQUEST bytes; one answer; and METRICS_SECONDS for
 * all of it.
 */
#ifndef TM3_METRICS_H
#define TM3_METRICS_H

#include "../base/list.h"
#include "../base/unix_listen.h"

enum {
	METRICS_CLIENTS = 8,
	METRICS_REQUEST = 4096,
	METRICS_SECONDS = 5,
};

struct engine;
struct listener;

struct metrics {
	struct engine *engine;
	const char *program;		/* "rp" */
	struct listener *listener;	/* NULL: nothing is served */
	struct unix_path path;		/* "path" of NULL: an address */
	struct list clients;		/* the oldest first */
	unsigned int nclients;
};

/*
 * Listens where the engine's settings say, if anywhere. Returns 0, or -errno after
 * it said what is wrong; -EADDRINUSE where something is in the way. Call
 * metrics_close() in either case, or in none.
 */
int metrics_open(struct metrics *m, struct engine *engine, const char *program);
/* A socket with a path goes, too. */
void metrics_close(struct metrics *m);

#endif
