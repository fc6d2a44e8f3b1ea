/* SPDX-License-Identifier: MIT */
/*
 * What is known of the bytes that a connection has still to send, beside that there are some: how
 * many are in its socket, and how many remain, by a HINT or by an HTTP answer's head. Some policies
 * choose by that; and what they conclude for a connection is here as well.
 *
 * Most connections have none, since nobody asks: it is made for the first fact (conn_outlook_new()),
 * and stays until the connection is freed, so that one which wakes again and again does not make it
 * each time. Where there is no memory for it nothing is known, and that only orders what is sent.
 */
#ifndef TM3_OUTLOOK_H
#define TM3_OUTLOOK_H

#include <stddef.h>
#include <stdint.h>

struct chunk;
struct http_size;

struct outlook {
	struct chunk *chunk;	/* read from its socket and not all sent; or NULL */
	struct http_size *http;	/* reads sizes of HTTP answers; NULL: not, or no more */
	uint64_t ready_to;	/* conn.tx_bytes once all that was measured is sent; 0: nothing was */
	uint64_t told_to;	/* the same of what was told of; 0: nothing was */
	size_t brim;		/* bytes in its socket from which on more wait behind them */
	int64_t silent_at;	/* from then on its application may be through; 0: nothing came */

	/* srpt's: alone, it would be complete in so many s, being so many bytes; */
	double completes;
	uint64_t whole;
	uint64_t before;	/* so many go before its last one, it included; */
	int64_t arrives_at;	/* and what was sent last has arrived by then */

	uint64_t first_bytes;	/* split's: of conn.tx_bytes, over the first path */
};

/* Of one of which nothing is known. */
extern const struct outlook outlook_none;

#endif
