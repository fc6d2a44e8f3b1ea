/* SPDX-License-Identifier: MIT */
/*
 * Dials the pipes that a session of the extension lacks: those beside the first
 * when it begins, and those that it loses. They are connected all at once, and
 * each is the session's as soon as it is. Tries are JOIN_MIN_MS apart, doubling
 * up to JOIN_MAX_MS while pipes go on lacking.
 *
 * If none is left and the port refuses, rp has ended, and all that it knew of the
 * session with it: then the session is stopped.
 */
#ifndef TM3_JOINER_H
#define TM3_JOINER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"
#include "../mux/pipe/transport.h"
#include "../mux/settings/limits.h"

struct joiner;
struct log;
struct session;

enum {
	JOIN_MIN_MS = 100,
	JOIN_MAX_MS = 5000,
	JOIN_DIAL_MS = 5000,	/* one connect() */
	JOIN_QUIET_MS = 10000,	/* without a try: the next one is at once */
};

struct join {			/* one pipe in the making */
	struct joiner *joiner;
	struct watch watch;
	struct timer deadline;
};

struct joiner {
	struct loop *loop;
	struct log *log;
	const struct transport_set *transports;
	unsigned int pipes;
	struct session *session;	/* NULL: there is none */
	struct sockaddr_storage addr;
	struct timer next;		/* when the next try may begin */
	int64_t tried_at;
	unsigned int tries;		/* since it was quiet */
	unsigned int under_way;
	bool complained, complete;	/* which was said */
	struct join join[PIPES_MAX];
};

void joiner_init(struct joiner *j, struct loop *loop, struct log *log,
		 const struct transport_set *transports, unsigned int pipes);
/* From now on for @s, whose first pipe goes to @addr. */
void joiner_start(struct joiner *j, struct session *s,
		  const struct sockaddr_storage *addr);
/* The session may lack pipes. */
void joiner_look(struct joiner *j);
/* The session is over, or will be. */
void joiner_stop(struct joiner *j);
void joiner_print(const struct joiner *j, FILE *out);

#endif
