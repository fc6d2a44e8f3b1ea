/* SPDX-License-Identifier: MIT */
/*
 * A run: consecutive messages of one connection, framed back to back, that
 * travel on one pipe. It is what a policy commits and what a pipe writes: on a
 * slow path one message, on a fast one as many as one system call can carry.
 * In the baseline a run lives until it is written. In the extension it is kept
 * until the other proxy acknowledged its messages.
 */
#ifndef TM3_RUN_H
#define TM3_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

enum {
	RUN_MESSAGES = 16,
	RUN_SIZE = RUN_MESSAGES * WIRE_MESSAGE_MAX,
	RUN_SPARE = 32,		/* empty runs kept for use again */
};

struct run {
	struct run *next;	/* in a pipe's queue */
	uint16_t id;		/* the connection */
	uint32_t first;		/* number of the first message */
	uint32_t messages;
	uint32_t uncounted;	/* messages of it that its pipe does not count */
	uint32_t count;		/* of its next one that counts; 0: none does */
	bool kept;		/* who has it needs it when it is written, too */
	bool heard;		/* the connection's other end was, before */
	size_t len;		/* bytes framed */
	size_t sent;		/* bytes written to the pipe */
	size_t size;		/* of buf */
	uint8_t buf[];
};

/* Where empty runs wait for use again. */
struct run_pool {
	struct run *spare;
	unsigned int count;
};

struct run *run_get(struct run_pool *pool);
void run_put(struct run_pool *pool, struct run *run);
void run_pool_fini(struct run_pool *pool);

/* Gives back what a run that must wait does not need; it may move. */
struct run *run_trim(struct run *run);

#endif
