/* SPDX-License-Identifier: MIT */
/*
 * Being told when the other end has acknowledged what was written to a TCP
 * socket: the kernel's time stamps of acknowledgements (SOF_TIMESTAMPING_TX_ACK),
 * which come through the socket's error queue and wake epoll with EPOLLERR.
 *
 * Each of them costs two system calls, so they are asked for write by write.
 */
#ifndef TM3_ACKS_H
#define TM3_ACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * So many are awaited on a socket at most; of more every second one is, so that the
 * oldest is still known when it is told of, however much is under way. While the
 * receive queue is full the kernel drops stamps: the next that comes settles those.
 */
enum { ACKS_MAX = 32 };

struct ack_asked {
	uint32_t last;		/* byte of the stream that it is about */
	bool clean;		/* it left at left_at, as far as is known; else its times tell nothing */
	bool schedule;		/* tell when it left for the network, too */
	int64_t sent_at;	/* loop_clock() */
	int64_t left_at;	/* the same, or later where that was told */
	size_t held;		/* noted by whoever asked, */
	size_t len;		/* and of these, the bytes of what was asked for */
	size_t in_flight;	/* as acks_met() has it; 0: nobody said so */
	uint32_t again;		/* segments that were sent again before */
	bool behind;		/* something that had been lost */
};

struct acks {
	bool on;
	unsigned int first, count;
	struct ack_asked asked[ACKS_MAX];
};

/* Before anything is written. -errno: this socket cannot tell. */
int acks_enable(struct acks *a, int fd);

static inline bool acks_can_ask(const struct acks *a)
{
	return a->on;
}

/* As send(), and asks. @offset: bytes that were written to @fd before. */
ssize_t acks_send(struct acks *a, int fd, const void *buf, size_t len,
		  uint64_t offset, const struct ack_asked *what);

enum acks_news {
	ACKS_NO_MORE = -1,
	ACKS_OTHER,	/* what came was of none that was asked for */
	ACKS_ACKED,	/* @what was acknowledged, @at that time */
	ACKS_LEFT,	/* @what left only now, as its schedule asked to be told */
};

/*
 * What came next. Where the wall clock was set since, @at of what was acknowledged is now, and @what
 * is not clean.
 */
enum acks_news acks_next(struct acks *a, int fd, struct ack_asked *what,
			 int64_t *at);

/* What ACKS_LEFT told of met so many bytes under way on its path. */
void acks_met(struct acks *a, const struct ack_asked *what, size_t in_flight);

#endif
