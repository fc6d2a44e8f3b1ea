/* SPDX-License-Identifier: MIT */
/*
 * The parts of bench-ramp: queries by one Poisson process over many clients, and a server that
 * answers at most so many a second.
 *
 * The names that are asked for are q0.tm3.test to q255.tm3.test, their addresses 192.0.2.0 to
 * 192.0.2.255. A query's number in its run is in its name (8 bits) and its id (16 bits), so an
 * answer tells which query it belongs to among the last WIRE_NUMBERS.
 */
#ifndef TM3_BENCH_RAMP_H
#define TM3_BENCH_RAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WIRE_NUMBERS = 1 << 24,
	WIRE_PREFIX = 2,	/* in front of a message on a connection: its length */
	WIRE_QUERY = 64,	/* a query and its prefix are not longer */
	WIRE_ANSWER = 128,	/* nor is an answer without one */
};

void wire_init(void);
/* Query @number with its prefix; its length. */
size_t wire_query(uint32_t number, uint8_t out[WIRE_QUERY]);
/* The number of the query that this answers, right in all; or -1, and @why says what is wrong. */
int32_t wire_answered(const uint8_t *msg, size_t len, const char **why);
/* The answer to a query, with its prefix; its length, or 0 if it is none of ours. */
size_t wire_answer(const uint8_t *query, size_t len,
		   uint8_t out[WIRE_PREFIX + WIRE_ANSWER]);
static inline size_t wire_length(const uint8_t prefix[WIRE_PREFIX])
{
	return (size_t)prefix[0] << 8 | prefix[1];
}

enum kind { KIND_UDP, KIND_TCP, KIND_TLS };

/* What comes for client @which. */
typedef void (*heard_fn)(void *arg, uint32_t which, const uint8_t *msg,
			 size_t len);

struct client;
struct ssl_ctx_st;

struct clients {
	enum kind kind;
	uint32_t count;
	int epfd;
	struct client *all;
	struct ssl_ctx_st *tls;
};

/*
 * Opens @count sockets to 127.0.0.1, shared evenly among @ports ports from @port on, and with
 * KIND_TLS shakes hands; the server must show the certificate @authority. 0 or -errno, and @which
 * is the client that failed.
 */
int clients_open(struct clients *c, uint16_t port, uint16_t ports,
		 const char *authority, uint32_t *which);
void clients_close(struct clients *c);
/* Sends a query with its prefix. 0; -EAGAIN if it takes none at present; or another -errno. */
int clients_ask(struct clients *c, uint32_t which, const uint8_t *query,
		size_t len);
/* Waits until something comes, at most until @until, and hands on what did. 0 or -errno. */
int clients_hear(struct clients *c, int64_t until, heard_fn heard, void *arg);

/* Queries that have no answer yet. */
struct book;

struct asked {
	int64_t due;
	uint32_t number, client;
};

struct book *book_new(void);
void book_free(struct book *b);
void book_add(struct book *b, const struct asked *it);
/* It is answered: true if it was waited for, and @it says how it was asked. */
bool book_take(struct book *b, uint32_t number, uint32_t client,
	       struct asked *it);
uint32_t book_left(const struct book *b);
/* Nothing that was asked is waited for any more. */
void book_forget(struct book *b);

/* Random numbers, the same for the same seed. */
struct dice {
	uint64_t state;
};

uint32_t dice_below(struct dice *d, uint32_t limit);
/* Nanoseconds until the next event of a Poisson process of @rate a second. */
double dice_gap_ns(struct dice *d, double rate);

int64_t clock_ns(void);
void clock_sleep_until(int64_t at);

/* Answers @rate a second at most (0: as many as it can) on 127.0.0.1:@port. -errno. */
int limited_serve(enum kind kind, uint16_t port, double rate);

#endif
