/* SPDX-License-Identifier: MIT */
/*
 * Two sessions of the extension, LP's and RP's, whose pipes are joined back to
 * back: what one engine says is what the other hears. Applications are sockets;
 * the server's is chosen by the destination's port.
 */
#ifndef TM3_TEST_EXT_PAIR_H
#define TM3_TEST_EXT_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/base/log.h"
#include "mux/conn/conn.h"
#include "mux/session/extended.h"
#include "mux/settings/settings.h"

enum { PAIR_PIPES = 4, PAIR_CONNS = 64, PAIR_PORT = 1000 };

struct pair_conn {
	int client, server;	/* applications; -1: not there, or gone */
	int opened;		/* times that RP was asked for it */
	int answered;		/* times that LP heard */
	uint8_t result;
	struct destination to;	/* as RP heard of it */
	struct conn *asked;	/* session_ask()'s */
};

struct pair {
	struct engine engine;
	struct settings settings;
	struct log log;
	struct session *lp, *rp;	/* NULL once they ended */
	char lp_why[160], rp_why[160];
	unsigned int pipes;
	struct wire_hello hello;
	uint32_t lacks;		/* features that LP does not offer */
	struct greeting *first, *awaiting[64];
	enum conn_end refuse;		/* RP refuses with it, unless it is NONE */
	/* RP is asked for a flow of datagrams; NULL: it refuses. */
	void (*open_flow)(struct pair *pair, struct conn *c);
	/* LP may ask RP to listen. What came of it, and what RP did. */
	bool reverses;
	unsigned int asked, heard;
	uint16_t listener, port;
	uint8_t listening;
	struct destination listen_at;
	enum wire_listening_result says;	/* RP, with the port PAIR_PORT */
	int closed_from;		/* what RP's last one was before it closed */
	bool redials;			/* LP dials at once what it lacks */
	unsigned int told[PATHS_MAX];	/* times that RP was told of a path */
	/* RP sends away who joins, or closes its pipe. */
	enum { PAIR_JOINS, PAIR_SENT_AWAY, PAIR_CLOSED } joins;
	bool lp_unknown;		/* as session_is_unknown() said at its end */
	struct layers *layers;	/* of all pipes, or NULL */
	/* Makes the two ends of a pipe; a TCP connection where it is NULL. */
	void (*connect)(struct pair *pair, int fd[2]);
	/*
	 * Lets the network that connect() put between the two ends carry some
	 * bytes. All the waits below call it; NULL: there is no such network.
	 */
	void (*carry)(struct pair *pair);
	void *network;			/* connect()'s and carry()'s */
	struct pair_conn conn[PAIR_CONNS];
};

/* Settings may be changed between these two. */
void pair_init(struct pair *pair);
/* Two paths: pipes 0 and 1 are on the one, 2 and 3 on the other. */
void pair_set_paths(struct pair *pair);
void pair_begin(struct pair *pair, unsigned int pipes);
/* The same, but returns when LP is welcomed: the other pipes may not be in use yet. */
void pair_start(struct pair *pair, unsigned int pipes);
void pair_end(struct pair *pair);

/* For cmocka: *state is a pair, initialised; or one that has begun, with PAIR_PIPES. */
int pair_setup_new(void **state);
int pair_setup(void **state);
int pair_setup_paths(void **state);	/* the first, with pair_set_paths() */
int pair_teardown(void **state);

/* One more pipe, from LP to RP: @index, or the first that is lacking. */
void pair_dial_at(struct pair *pair, unsigned int index);
void pair_dial(struct pair *pair);
/* Times that LP dialled pipe @index again. */
unsigned int pair_redialled(const struct pair *pair, unsigned int index);
/* All that were dialled are in use at both ends. */
void pair_settle(struct pair *pair);
bool pair_is_settled(const struct pair *pair);
/* The network resets LP's pipe @index. What was under way on it is lost. */
void pair_kill(struct pair *pair, unsigned int index);

/* RP accepts connection @i: pair->conn[i].server talks to .client. Its 0 or -errno. */
int pair_accept(struct pair *pair, int i, uint16_t listener);

/* Opens connection @i: pair->conn[i].client talks to .server. */
void pair_open(struct pair *pair, int i);
/* The same, waiting until RP has it. */
void pair_connect(struct pair *pair, int i);

/* Waits until that can be read at @fd, and nothing else. */
void pair_expect(struct pair *pair, int fd, const void *bytes, size_t len);
/* Waits for the end at @fd: 0 in order, -ECONNRESET. */
void pair_expect_end(struct pair *pair, int fd, long how);

/* No connection is left at either end, nothing is held or kept. */
void pair_at_rest(struct pair *pair);

#endif
