/* SPDX-License-Identifier: MIT */
/*
 * The connect() calls to servers, of all sessions.
 *
 * One connect() takes milliseconds when most local ports towards a destination
 * are taken. So a SYN only puts its connection in line. Connects are begun
 * after the batch of events, one of each session in turn, and for
 * CONNECTS_TURN_US at most; then others have their turn.
 *
 * A session may have --max-connects under way; more of its connections stay in
 * line until one of them comes to an end, and are refused when that takes as
 * long as a connect() may. A connection that ends before its connect() does,
 * with nothing to be delivered, gives its local port back at once.
 */
#ifndef TM3_RP_CONNECTS_H
#define TM3_RP_CONNECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/list.h"
#include "../mux/base/loop.h"

struct conn;
struct engine;
struct options;

enum { CONNECTS_TURN_US = 2000, CONN_TEXT = 320 };

struct connects {
	struct engine *engine;
	const struct options *options;
	struct list in_line;	/* the sessions whose turn comes */
	struct task turn;
	int64_t said_at;	/* when a shortage was logged; 0 never */
};

struct connector {		/* of one session */
	struct connects *all;
	struct list member;
	struct list in_line;	/* its connections, the oldest first */
	unsigned int under_way;
	unsigned int sockets;	/* of its connections, those under way too */
	int64_t said_at;	/* when it was full; 0 never */
};

void connects_init(struct connects *all, struct engine *engine,
		   const struct options *options);
void connects_fini(struct connects *all);

void connector_init(struct connector *c, struct connects *all);
/* Ends those that are in line. What is connecting goes on by itself. */
void connector_fini(struct connector *c);

/* Connects @conn to its destination when its turn comes, or refuses it. */
void connector_add(struct connector *c, struct conn *conn);
/* As conn_ops.moved tells: its connect() ended, or its socket was closed. */
void connector_moved(struct connector *c, struct conn *conn, int from);

/* Where @conn wants to go. */
void conn_address(const struct conn *conn, struct sockaddr_storage *to);
/* "session 1: connection 7 to 192.0.2.1:80", for a line about it. */
const char *conn_text(const struct conn *c, char text[CONN_TEXT]);

#endif
