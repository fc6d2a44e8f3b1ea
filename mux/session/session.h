/* SPDX-License-Identifier: MIT */
/*
 * A session: n pipes to one peer, and the connections they carry.
 *
 * This is where the rooms meet: pipes bring messages, the table says whose they
 * are, reorder queues put them in order, connections get the bytes; and the
 * other way round the scheduler picks, connections frame, pipes write. What is specific to
 * a proxy enters by session_role.
 *
 * A session ends as a whole: when it loses a pipe (baseline cannot know what
 * was lost with it), or on session_stop(). Then its connections are reset, the
 * pipes closed, and role->ended() is told, after the batch. Only what had ended
 * in order before, and is still being written out, goes on as an orphan.
 */
#ifndef TM3_SESSION_H
#define TM3_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../base/list.h"
#include "../base/loop.h"
#include "../settings/settings.h"
#include "hoard.h"

struct conn;
struct log;
struct session;
struct stats;

/* What all sessions of a process share. */
struct engine {
	struct loop *loop;
	const struct settings *settings;
	struct log *log;
	struct stats *stats;	/* or NULL */
	uint8_t *scratch;	/* what pipes read into */
	struct list orphans;	/* connections that outlive their session */
	size_t orphaned;	/* bytes that wait in their queues */
	struct hoard hoard;	/* all that sessions hold for applications, */
	struct task relief;	/* where that is too much */
	unsigned int sessions;	/* numbered from 1 */
};

int engine_init(struct engine *engine, const struct settings *settings,
		struct log *log);
void engine_fini(struct engine *engine);

struct session_role {
	/*
	 * A SYN arrived: connect @c to where it wants (conn_connecting(),
	 * conn_attach(), or conn_refuse()). NULL: this end opens connections itself, with
	 * session_open(), and what arrives is downlink.
	 */
	void (*syn)(struct session *s, struct conn *c);
	/* See conn_ops.moved; @from is an enum conn_state. May be NULL. */
	void (*moved)(struct session *s, struct conn *c, int from);
	/* An id became free, or a connection went: there is room again. */
	void (*room)(struct session *s);
	/* It is over, and freed as soon as this returns. */
	void (*ended)(struct session *s);
};

/*
 * A session without pipes; @peer: as logs shall name the other end. Which pipes
 * it gets is a greeting's to say (greeting.h): session_add_pipe() for each, then
 * session_start(), or session_free() where it cannot start.
 */
struct session *session_new(struct engine *engine,
			    const struct session_role *role, void *owner,
			    const char *peer);
/*
 * Makes a pipe of a connected socket, which is the session's from here on, also
 * on failure. 0 or -ENOMEM and its like.
 */
int session_add_pipe(struct session *s, int fd);
void session_start(struct session *s);

/* What it holds for applications counts there, too. */
void session_counts_in(struct session *s, struct hoard *h);
void session_free(struct session *s);

/*
 * Opens a connection for @fd, an application's accepted socket, to @addr:@port.
 * Takes the socket on success; -EAGAIN when no id or place is free.
 */
int session_open(struct session *s, int fd, const uint8_t addr[4],
		 uint16_t port);
bool session_has_room(const struct session *s);
/* How long until an id is free, if all that are not in use must rest; else 0. */
int64_t session_next_id_in(const struct session *s);
/* False from its failure, or from session_stop(), to its end. */
bool session_is_up(const struct session *s);

/*
 * End it in order: connections are reset, pipes flushed and closed as soon
 * as the peer closed too, LINGER_MS at most; then role->ended().
 */
void session_stop(struct session *s, const char *why);

void *session_owner(const struct session *s);
const char *session_peer(const struct session *s);
const char *session_why(const struct session *s);	/* it ended */
unsigned int session_number(const struct session *s);
/* That it has now, those included that are still being closed. */
unsigned int session_connections(const struct session *s);
struct engine *session_engine(const struct session *s);

/* A table of pipes and connections, for a person. */
void session_print(struct session *s, FILE *out);

#endif
