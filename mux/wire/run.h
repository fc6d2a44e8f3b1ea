/* SPDX-License-Identifier: MIT */
/*
 * A run: consecutive messages of one connection, framed back to back, that
 * travel on one pipe. It is what a policy commits and what a pipe writes: on a
 * slow path one message, on a fast one as many as save system calls.
 * In the baseline a run lives until it is written. In the extension it is kept
 * until the other proxy acknowledged its messages.
 */
#ifndef TM3_RUN_H
#define TM3_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/*
 * Of 256 KiB for bulk on fast paths, else of a quarter of that: most have far less, and
 * what is small enough a heap has at hand.
 */
enum {
	RUN_MESSAGES = 64,
	RUN_LARGE = RUN_MESSAGES * WIRE_MESSAGE_MAX,
	RUN_SIZE = RUN_LARGE / 4,
	RUN_SPARE = 2 << 20,	/* bytes of empty runs kept for use again */
	RUN_COPIED = 8 << 10,	/* what waits is copied up to here, and its run used again */
};

struct run {
	struct run *next;	/* in a pipe's queue */
	uint16_t id;		/* the connection */
	uint8_t paths;		/* bits: it goes over these alone; 0: over any, */
	bool on_all;		/* and over each of them */
	uint32_t first;		/* number of the first message */
	uint32_t messages;
	uint32_t uncounted;	/* messages of it that its pipe does not count */
	uint32_t count;		/* of its next one that counts; 0: none does */
	uint64_t order;		/* among all that the session ever kept, as it was first sent; 0: not yet */
	bool of_conn;		/* a connection sent it: it is none of the session's own */
	bool copy;		/* it went before, on another pipe */
	bool kept;		/* who has it needs it when it is written, too */
	bool ahead;		/* it went ahead of connections that take turns */
	bool heard;		/* the connection's other end was, before: any order will do */
	uint8_t hints;		/* HINTs among the messages that its connection framed */
	size_t len;		/* bytes framed */
	size_t sent;		/* bytes written to the pipe */
	size_t size;		/* of buf */
	uint8_t buf[];
};

/* Where empty runs wait for use again. */
struct run_pool {
	struct run *spare, *large;
	size_t bytes;		/* of both */
	bool used;		/* since run_pool_release() */
};

struct run *run_get(struct run_pool *pool);
struct run *run_get_large(struct run_pool *pool);
void run_put(struct run_pool *pool, struct run *run);
void run_pool_fini(struct run_pool *pool);
/*
 * To be called now and then: gives back all of them if none was taken since the last time. False:
 * there was none to be given back.
 */
bool run_pool_release(struct run_pool *pool);

/* Gives back what a run that must wait does not need, if that is half of it; it may move. */
struct run *run_trim(struct run_pool *pool, struct run *run);

#endif
