/* SPDX-License-Identifier: MIT */
/*
 * A session of the extension against a peer that is played by hand, on one pipe
 * or two.
 */
#ifndef TM3_TEST_EXT_HAND_H
#define TM3_TEST_EXT_HAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/base/log.h"
#include "mux/session/extended.h"
#include "mux/settings/settings.h"

enum { ID = 7, HEARD = 1 << 16, PIPES = 2 };

struct hand {
	struct engine engine;
	struct settings settings;
	struct log log;
	struct session *s;
	bool lp;			/* what the session is */
	char why[160];
	struct wire_hello hello;
	int fd[PIPES];
	int app, opened;
	bool connects;			/* and does not come to an end of it */
	uint8_t heard[HEARD];		/* on pipe 0 */
	size_t len;
	bool closed;
};

/* @lp: the session is LP's, and the hand is RP. */
void hand_begin(struct hand *h, bool lp);
void hand_end(struct hand *h);
/*
 * Whether another pipe may join. One that was welcomed hears WELCOME, another one hears
 * nothing. Its end is fd[1] from then on, and the one before is closed.
 */
bool hand_joins(struct hand *h, uint8_t index, uint8_t count,
		uint32_t incarnation);
/* All that its sessions may hold together. */
void hand_memory(struct hand *h, size_t most);

/* What it says on pipe 0. */
void hand_put(struct hand *h, const void *bytes, size_t len);
void hand_ext(struct hand *h, const struct wire_ext *what);
void hand_open(struct hand *h, uint32_t number);
void hand_data(struct hand *h, uint32_t number, size_t len);
void hand_fin(struct hand *h, uint16_t id, uint32_t number, int reason);
/* A message of the extension with @len bytes, whatever they mean. */
void hand_body(struct hand *h, const uint8_t *body, size_t len);
/* @n messages of @size bytes, as long as they are taken. Returns the next number. */
uint32_t hand_fills(struct hand *h, uint16_t id, uint32_t number, uint32_t n,
		    size_t size);

/* What it heard: the last message of a type, or the last FIN. */
struct want {
	struct hand *h;
	unsigned int type;
	struct wire_ext ext;
	struct wire_msg fin;
};

/* Reads what the session says on pipe 0. */
void hand_listens(struct hand *h);
/* Waits for a message of @type, 0: a FIN. */
struct want hand_hears(struct hand *h, unsigned int type);
/* The session has ended; for run_until(). */
bool hand_has_ended(void *arg);

/* What a bad message ends, and no more than that. */
void ends_the_session(struct hand *h);
void ends_the_connection(struct hand *h);
/* It answers a PING, so it and its pipe are there. */
void goes_on(struct hand *h);

#endif
