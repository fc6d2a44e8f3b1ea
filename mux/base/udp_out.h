/* SPDX-License-Identifier: MIT */
/*
 * Gathers datagrams that are to leave by UDP sockets, and sends what was gathered in
 * as few system calls as can be: sendmmsg(), and where several of one sender have one
 * size and one destination, a single walk through the kernel for them (UDP_SEGMENT).
 *
 * A sender's datagrams leave in the order in which they were added. Each stands for
 * itself: one that cannot be sent is told to its sender, and the others go.
 *
 * What must not be fragmented leaves a socket that forbids it. The socket is set so when the
 * first such datagram goes, and back when another kind does: a sender's are mostly of one.
 *
 * Somebody flushes when all that is known was added; else it happens after the batch.
 */
#ifndef TM3_UDP_OUT_H
#define TM3_UDP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "loop.h"

enum {
	UDP_OUT_MOST = 64,	/* datagrams, and */
	UDP_OUT_BYTES = 64 << 10,	/* bytes that are gathered before they go */
	UDP_OUT_LARGEST = 4608,	/* of one datagram */
};

struct udp_out;

/* Embedded in whom the datagrams belong to. */
struct udp_sender {
	unsigned int gathered;	/* of its datagrams, that were not sent yet */
	uint16_t segment_most;	/* larger ones are not sent several at a time */
	bool whole;		/* what it adds from now on must not be fragmented */
	bool forbids;		/* its socket lets nothing be fragmented at present */
	/* An address of this host's; or NULL: the kernel chooses. */
	const struct sockaddr_storage *source;
	/* One was not sent, because of errno @err. This must not add another, or end @by. */
	void (*unsent)(struct udp_sender *by, int err);
	/* The path takes less in one packet than it was given; the same is true. */
	void (*narrow)(struct udp_sender *by);
};

void udp_sender_init(struct udp_sender *by,
		     void (*unsent)(struct udp_sender *by, int err),
		     void (*narrow)(struct udp_sender *by));

struct udp_out *udp_out_new(struct loop *loop);
void udp_out_free(struct udp_out *out);	/* NULL is fine; nothing is sent any more */

/*
 * A datagram made of @n parts, which are copied: UDP_OUT_LARGEST bytes at most. @to: NULL where
 * @fd is connected. @by has one socket, which stays open until all was sent.
 */
void udp_out_add(struct udp_out *out, struct udp_sender *by, int fd,
		 const struct sockaddr_storage *to, const struct iovec *parts,
		 int n);

void udp_out_flush(struct udp_out *out);
/* What there is of @by alone; then it may go. */
void udp_out_flush_of(struct udp_out *out, struct udp_sender *by);

#endif
