/* SPDX-License-Identifier: MIT */
/*
 * Whose connections they are: a session, or the engine where one outlives its session. What all
 * of an owner's connections have in common is said here, once: what they run on, what the owner
 * is told, and how they talk on the pipes.
 *
 * What has ended and is closed stands in line to be given back, one at a time: a thousand may end
 * at once, and others have their turn between them.
 */
#ifndef TM3_CONN_OWNER_H
#define TM3_CONN_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/list.h"
#include "../base/loop.h"
#include "../base/slab.h"

struct conn;
struct run;

struct conn_ops {
	/* It has something for the pipes: bytes, a SYN, a FIN. */
	void (*ready)(struct conn *c);
	/* It has nothing for them for now, or never again. */
	void (*idle)(struct conn *c);
	/* Its queue to the socket grew. */
	void (*queued)(struct conn *c, size_t bytes);
	/* Less waits for it: in its queue to the socket, or out of order. */
	void (*released)(struct conn *c, size_t queued, size_t early);
	/*
	 * Its connect() came to an end, or its socket was closed. One that waited
	 * for its turn is still in line. May be NULL.
	 */
	void (*moved)(struct conn *c, int from);
	/*
	 * It ended in order, and its socket brought bytes behind that: they are
	 * lost. Called once. May be NULL.
	 */
	void (*lost)(struct conn *c);
	/*
	 * There is more in its socket than before, or its end. Who wants to know how much calls
	 * conn_measure(). May be NULL.
	 */
	void (*filled)(struct conn *c);
	/*
	 * What its HTTP server said of an answer's size is not so, as @how says. Nothing is known of its
	 * sizes from there on. Called once at most. May be NULL.
	 */
	void (*missized)(struct conn *c, const char *how);
	/* It has ended for the pipes: its id is free to rest. Called once. */
	void (*ended)(struct conn *c);
	/* It has ended and is closed: free it. */
	void (*gone)(struct conn *c);
};

/*
 * How a connection talks on the pipes: by the messages of the baseline, or by
 * those of the extension (channel.h).
 */
struct conn_speech {
	/* Frame what must go ahead of its bytes, unless that was done: a SYN. */
	void (*frame_first)(struct conn *c, struct run *run);
	/* The number of its next message: data, or a FIN with @reason. */
	uint32_t (*number)(struct conn *c, uint8_t reason);
	/* Bytes that it may send now. */
	size_t (*credit)(const struct conn *c);
	/* So many bytes were framed. */
	void (*sent)(struct conn *c, size_t bytes);
	/* It has bytes and no credit. conn_credited() lets it go on. */
	void (*starved)(struct conn *c);
	uint8_t no_more;	/* the reason of a FIN that ends in order */
	bool half_open;		/* each direction ends by itself */
	bool answers;		/* the other end is told how a connect() ended */
};

extern const struct conn_speech conn_speech_baseline;

/* Whose connections they are: a session, or who has what outlived one. */
struct conn_owner {
	struct loop *loop;
	struct slab *conns;	/* that they are made in: the engine's */
	const struct conn_ops *ops;
	const struct conn_speech *speech;
	void *self;
	bool records;		/* it asks at their end how long messages waited: waits.h */
	struct list sockets;	/* those that have a socket, or may get one: the oldest first */
	struct list done;	/* those that have ended and are closed, */
	struct task reap;	/* which gives them back one by one */
};

void conn_owner_init(struct conn_owner *owner, struct loop *loop,
		     struct slab *conns, const struct conn_ops *ops,
		     const struct conn_speech *speech, void *self);
/* Frees those that are done, and gives back none any more. */
void conn_owner_fini(struct conn_owner *owner);

/* @c has ended and is closed: ops->gone() follows, after the batch. */
void conn_owner_reap(struct conn *c);

#endif
