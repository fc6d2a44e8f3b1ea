/* SPDX-License-Identifier: MIT */
/*
 * What the load generator's two sides say to each other.
 *
 * A connection starts with one struct load_request from the client; both
 * sides are the same program on the same machine, so it travels as it lies in
 * memory. What follows depends on the operation:
 *
 *	LOAD_DOWN	server sends @bytes bytes of the pattern
 *	LOAD_UP		client sends @bytes, server answers how many came
 *	LOAD_UP_CHECK	the same, the server compares them with the pattern and
 *			answers how many were right before the first wrong one
 *	LOAD_ECHO	server returns what comes
 *	LOAD_REPLY	server returns one byte
 *	LOAD_PACED	server sends @bytes bytes, a multiple of PACED_SIZE, at PACED_RATE
 *
 * Nobody half-closes (not every proxy can): the client closes when it has
 * what it wanted, the server when it sees that.
 */
#ifndef TM3_BENCH_LOAD_H
#define TM3_BENCH_LOAD_H

#include <stddef.h>
#include <netinet/in.h>
#include <stdint.h>

#define LOAD_MAGIC 0x334d544cu

enum load_op {
	LOAD_DOWN = 1,
	LOAD_UP,
	LOAD_UP_CHECK,
	LOAD_ECHO,
	LOAD_REPLY,
	LOAD_PACED,
};

struct load_request {
	uint32_t magic;
	uint32_t op;		/* enum load_op */
	uint64_t bytes;
};

/*
 * The pattern repeats after a prime number of bytes, so that no message or
 * buffer size divides it: anything lost, doubled or swapped shows.
 */
enum {
	PATTERN_PERIOD = 65521,
	PATTERN_CHUNK = 128 * 1024,
};

void pattern_init(void);
/* PATTERN_CHUNK bytes that belong at @offset of a transfer. */
const uint8_t *pattern_at(uint64_t offset);
/* How many of @len bytes at @offset are right, up to the first wrong one. */
size_t pattern_match(const uint8_t *buf, size_t len, uint64_t offset);

/* 100 Mbit/s in packets of 1,200 bytes, 50 of them every 4.8 ms. */
enum { PACED_SIZE = 1200, PACED_BURST = 50, PACED_RATE = 100000000 };

/* So many packets' bytes on a connection. 0 or -errno. */
int paced_bytes(int fd, uint64_t packets);
struct paced {
	struct sockaddr_in to;		/* the relay, whom the client sends to */
	struct sockaddr_in sink;	/* the server */
	int by_socks;		/* a datagram says in front of its payload that it is for @sink */
	int down;		/* from the server, once it was asked */
	uint64_t packets;
};
/* The same as datagrams, and how many of them come at the other end. 0 or -errno. */
int paced_datagrams(const struct paced *what, uint64_t *came);

enum {
	ASK_MOST = 16384,	/* bytes of a request, or of a message that has its turn */
	ASK_WARM = 200,		/* requests of a connection before the first that counts */
};

/*
 * @count requests of @size bytes on each connection, on all of them at the same
 * time, and what each @took, in ns. 0 or -errno.
 */
int ask(const int *fds, int connections, size_t size, int count, int64_t *took);

struct churn {
	uint64_t tried, failed;
	int64_t took_ns;
	int64_t pause;		/* ns; the longest time without an answer */
	int64_t *took;		/* ns from when each was due to its answer; -1: none */
};

/* Connections, so many a second for so long. 0 or -errno; @found->took is the caller's. */
int churn(const struct sockaddr_in *to, uint64_t rate, uint64_t seconds,
	  struct churn *found);

/*
 * @count connections that echo, to @ports ports from @first on, each of which
 * had an answer; and messages of @size bytes, one after the other on each of
 * them. 0 or -errno.
 */
int turns_open(const struct sockaddr_in *first, int ports, int count, int *fds);
int turns_take(const int *fds, int count, size_t size, double seconds,
	       uint64_t *messages);

/* Serves on 127.0.0.1:@port until killed; 0 or -errno if it cannot start. */
int serve(uint16_t port);

#endif
