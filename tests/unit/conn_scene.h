/* SPDX-License-Identifier: MIT */
/*
 * One connection on a stage: its socket has an application at the other end,
 * what it frames is read, and what it tells its owner is counted.
 */
#ifndef TM3_TEST_CONN_SCENE_H
#define TM3_TEST_CONN_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/conn/conn.h"
#include "loopback.h"

enum { BULK = 6 << 20, ID = 77 };

/* The connection, its application's end, and what it told its owner. */
struct scene {
	struct loop *loop;
	struct slab room;
	struct conn_owner owner;
	struct conn *c;
	int app;		/* the application's socket, or -1 */
	int readies, idles, overs, gones;
	size_t queued, released, held_released;
	enum conn_end end;

	uint32_t number;	/* of the next message it frames */
	uint8_t *framed;	/* payloads so far */
	size_t framed_len;
	int syns;
	int fin;		/* the FIN's reason, 0 before it */

	uint8_t *got;		/* what the application read */
	size_t got_len;
	long got_end;		/* 0: end; -errno; 1: still open */
};

/* What is delivered; to be filled before the tests. */
extern uint8_t bulk[BULK];

int scene_setup(void **state);
int scene_teardown(void **state);

/* Give it a socket as that of a connection which stands. */
void scene_attach(struct scene *scene);

/* One conn_frame(), held to its contract. */
void scene_frame(struct scene *scene, size_t budget, size_t payload);

/* Lets events come in, and frames whatever it has. */
void scene_frame_all(struct scene *scene);

/* bulk[from..to) in order from the pipes, in pieces as messages bring them. */
void scene_deliver(struct scene *scene, size_t from, size_t to);

/* For run_until(). */
bool fin_is_framed(void *arg);
bool app_read_all(void *arg);

/* It is gone, once, for this reason; the application came to this end. */
void assert_ended(struct scene *scene, enum conn_end end);
void assert_app_ends(struct scene *scene, long end);

#endif
