/* SPDX-License-Identifier: MIT */
/*
 * Dials the pipes that a session of the extension lacks: those beside the first
 * when it begins, and those that it loses. They are connected all at once, and
 * each is the session's as soon as it is. A pipe that is lost is dialled again at
 * once, however many others are under way; but in the long run no more than one in
 * JOIN_MIN_MS. After a try that failed the next one is JOIN_MIN_MS later, and that doubles
 * up to JOIN_MAX_MS while none of them is welcomed.
 *
 * It dials where the session's first pipe went. If that fails it looks RP's name up
 * anew, and goes on with all of its addresses in turn: the one that answered last
 * first, the session's own, then those of its family, because RP sees LP come from the
 * same address there.
 *
 * If none is left and the session's own address refuses such a pipe as the first one was, rp
 * has ended, and all that it knew of the session with it: then the session is stopped.
 *
 * What a pipe is made of goes by its index on its path. One that cannot be had, because rp
 * does not take its kind, leaves the session with the others.
 *
 * Each path has a joiner of its own, so that one which leads nowhere delays no other.
 */
#ifndef TM3_JOINER_H
#define TM3_JOINER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"
#include "../mux/pipe/transport.h"
#include "../mux/settings/path_set.h"
#include "whereabouts.h"

struct dialer_options;
struct host;
struct joiner;
struct log;
struct session;

enum {
	JOIN_MIN_MS = 100,
	JOIN_MAX_MS = 5000,
	JOIN_DIAL_MS = 5000,	/* one connect() */
	JOIN_QUIET_MS = 10000,	/* without a try: the next one is at once */
};

struct join {			/* a pipe in the making, by its index on the path */
	struct joiner *joiner;
	enum transport kind;
	struct watch watch;
	struct timer deadline;
	struct sockaddr_storage to;
};

struct joiner {
	struct loop *loop;
	struct log *log;
	const struct transport_set *transports;
	const struct path_spec *path;	/* or NULL, where nobody named one */
	unsigned int number;		/* of its path, */
	unsigned int first, pipes;	/* and pipes from that index on are its own */
	struct whereabouts rp;
	struct session *session;	/* NULL: there is none */
	struct sockaddr_storage home;	/* where its first pipe went, */
	struct sockaddr_storage answered;	/* and the one that came up last */
	struct answer at;		/* where it may be found, */
	unsigned int turn;		/* and which of them is tried */
	struct timer next;		/* when the next try may begin */
	int64_t tried_at;
	bool failing;			/* the last try failed, */
	unsigned int retries;		/* and so many that came behind one */
	int64_t paid_until;		/* by JOIN_MIN_MS for each that was dialled */
	unsigned int under_way;
	bool complained, complete;	/* which was said */
	struct join join[PIPES_MAX];
};

/*
 * For path @number of @dial->paths, or for all pipes where nobody named one. @dial stays the
 * caller's. 0 or -errno; joiner_fini() in either case.
 */
int joiner_init(struct joiner *j, struct loop *loop, struct log *log,
		const struct dialer_options *dial, unsigned int number);
void joiner_fini(struct joiner *j);
/* From now on for @s, whose first pipe goes to @addr. */
void joiner_start(struct joiner *j, struct session *s,
		  const struct sockaddr_storage *addr);
/* The session may lack pipes. */
void joiner_look(struct joiner *j);
/* A pipe was welcomed: the next one that is lacking need not wait for long. */
void joiner_welcomed(struct joiner *j);
/* The network is another, see session_roam(): what is lacking is dialled at once. */
void joiner_roam(struct joiner *j, const struct host *host);
/* The session has ended, or will be. */
void joiner_stop(struct joiner *j);
void joiner_print(const struct joiner *j, FILE *out);

#endif
