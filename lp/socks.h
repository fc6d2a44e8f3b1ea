/* SPDX-License-Identifier: MIT */
/*
 * SOCKS5 (RFC 1928) as a server speaks it, as bytes in, verdicts and replies
 * out: greeting, choice of method, request. No sockets, no clock.
 *
 * socks_need() says how many bytes belong to the piece that comes next; never
 * read more, so that what the application sends behind its request stays in the
 * socket for the engine.
 *
 * Only "no authentication", and CONNECT and UDP ASSOCIATE are served. What an association's
 * datagrams look like is in socks_udp.h.
 */
#ifndef TM3_SOCKS_H
#define TM3_SOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../mux/wire/destination.h"

enum socks_reply {
	SOCKS_SUCCEEDED = 0,
	SOCKS_FAILURE = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_NETWORK_UNREACHABLE = 3,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_TTL_EXPIRED = 6,
	SOCKS_NO_COMMAND = 7,
	SOCKS_NO_ADDRESS_TYPE = 8,
};

enum socks_verdict {
	SOCKS_MORE,		/* read on */
	SOCKS_SAY,		/* send socks->out, then read on */
	SOCKS_REQUEST,		/* a CONNECT: see the fields */
	SOCKS_ASSOCIATE,	/* a UDP ASSOCIATE; to: where it will send from, or
				 * port 0: it does not say */
	SOCKS_REJECT,		/* send socks->out, then close */
	SOCKS_GARBAGE,		/* not SOCKS5: close */
};

enum { SOCKS_TYPE_IPV4 = 1, SOCKS_TYPE_NAME = 3, SOCKS_TYPE_IPV6 = 4 };

enum {
	SOCKS_PIECE_MAX = 257,	/* a name of 255 and its port */
	SOCKS_REPLY_MAX = 22,	/* with an IPv6 address */
};

struct socks {
	uint8_t state;
	uint8_t command;
	uint8_t address_type;
	uint16_t need, have;	/* of the piece that is being read */
	uint8_t in[SOCKS_PIECE_MAX];
	uint8_t out[SOCKS_REPLY_MAX];
	uint8_t out_len;

	struct destination to;	/* the request */
};

void socks_init(struct socks *s);

/* How many bytes to read at most; never 0 while more is wanted. */
size_t socks_need(const struct socks *s);

/* Takes @len bytes, at most socks_need(). */
enum socks_verdict socks_take(struct socks *s, const uint8_t *data,
			      size_t len);

/* Fills socks->out with the answer to the request, bound to 0.0.0.0:0. */
void socks_answer(struct socks *s, enum socks_reply reply);

/* The same, granted, and bound to @at, an address. */
void socks_grant(struct socks *s, const struct destination *at);

/* What rp answered to an OPEN (enum wire_synack_result), in SOCKS5's words. */
enum socks_reply socks_reply_to(uint8_t result);

#endif
