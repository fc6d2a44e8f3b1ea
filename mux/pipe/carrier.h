/* SPDX-License-Identifier: MIT */
/*
 * What differs between pipes by what they are made of: a stream of bytes (TCP,
 * MPTCP: stream.c), or messages of the socket's own (SCTP: sctp.c). All else is
 * pipe's.
 */
#ifndef TM3_CARRIER_H
#define TM3_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../settings/transports.h"

struct pipe;
struct run;

struct carrier {
	/* Options of a connected socket. 0 or -errno. */
	int (*open)(struct pipe *p);
	void (*close)(struct pipe *p);
	/* Bring p->info up to date: what it has unsent and in flight, or all. */
	void (*look_at_queues)(struct pipe *p);
	void (*look)(struct pipe *p);
	/* The allowance is another one: have the socket tell when it is open. */
	void (*allow)(struct pipe *p);
	/*
	 * Returns 0, -EAGAIN with some of it sent, or what went wrong: of the end of a shortage
	 * (sock_is_shortage()) nobody tells. What follows @run may be written with it, where the
	 * carrier @gathers.
	 */
	int (*write)(struct pipe *p, struct run *run);
	bool gathers;
	/* What came, by pipe_give() and its like: as pipe_read(). */
	size_t (*read)(struct pipe *p, size_t most);
	bool (*is_unheard)(struct pipe *p, int64_t now, int64_t limit);
	/* Say that no more comes; reading tells when the other end has closed. */
	void (*shut)(struct pipe *p);
};

const struct carrier *carrier_of(enum transport t);

extern const struct carrier carrier_stream, carrier_mptcp, carrier_sctp;

#endif
