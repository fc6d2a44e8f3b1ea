/* SPDX-License-Identifier: MIT */
/*
 * The other end of a session, played by hand: messages are put into pipes one
 * by one, in any order, and what the session answers is kept by connection.
 */
#ifndef TM3_TEST_PEER_H
#define TM3_TEST_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/base/log.h"
#include "mux/session/session_inside.h"
#include "mux/settings/settings.h"

enum { PEER_PIPES = 3, PEER_IDS = 32 };

struct peer_conn {
	int app;		/* the application's socket, -1 for none */
	int syns;		/* times its SYN came through */
	uint32_t messages;	/* that the session sent, in any order */
	size_t bytes;		/* of payload among them */
	int fins, reason;	/* and FINs */
};

struct peer {
	struct engine engine;
	struct settings settings;
	struct log log;
	struct session *s;	/* NULL once it ended */
	char why[160];
	int fd[PEER_PIPES];
	uint8_t *partial[PEER_PIPES];
	size_t partial_len[PEER_PIPES];
	struct peer_conn conn[PEER_IDS];
};

/*
 * A session in the role of RP (it accepts SYNs, and its applications are
 * sockets in peer->conn), or of LP. Its settings may be changed before.
 */
void peer_init(struct peer *peer);
void peer_open(struct peer *peer, bool rp);
void peer_close(struct peer *peer);

/* For cmocka: *state is a peer, initialised; or one whose session plays RP, or LP. */
int peer_setup(void **state);
int peer_setup_rp(void **state);
int peer_setup_lp(void **state);
int peer_teardown(void **state);

/*
 * Put bytes into a pipe, running the loop until it took them. False when it is
 * full and the session reads no more: it paused or ended.
 */
bool peer_put(struct peer *peer, unsigned int pipe, const void *bytes,
	      size_t len);
void peer_data(struct peer *peer, unsigned int pipe, uint16_t id,
	       uint32_t number, size_t len);
void peer_syn(struct peer *peer, unsigned int pipe, uint16_t id);
void peer_fin(struct peer *peer, unsigned int pipe, uint16_t id,
	      uint32_t number, uint8_t reason);

/* Let the session act on what it has, and read what it says. */
void peer_settle(struct peer *peer);

/* Waits for it, 5 s at most. */
bool peer_waits_for_fin(struct peer *peer, uint16_t id);
bool peer_waits_for_end(struct peer *peer);

/* Data made of @text; what the application of @id reads is @want. */
void peer_text(struct peer *peer, unsigned int pipe, uint16_t id,
	       uint32_t number, const char *text);
void assert_app_reads(struct peer *peer, uint16_t id, const char *want);

/* The peer hears of a reset, once, and so does the application. */
void assert_reset(struct peer *peer, uint16_t id);

/* A connection that stands, and was heard of: number 2 is next. */
void peer_open_conn(struct peer *peer, uint16_t id);

/*
 * Fills connection 1, whose application does not read, until pipes pause. Pipe
 * 0 stays inside a message: it can bring nothing else.
 */
void peer_fill_until_paused(struct peer *peer);

#endif
