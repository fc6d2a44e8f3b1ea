/* SPDX-License-Identifier: MIT */
/*
 * SOCKS5 UDP ASSOCIATE at work. An association has a UDP socket of its own, on the address
 * at which its control connection came in, and ends with that connection. Datagrams are
 * taken from the client's host alone, and from one port: the one that its request
 * named, or that of the first datagram. All else is dropped and counted.
 *
 * Its flow is opened with the first datagram, and again with the next one after rp
 * ended it: for being idle, or because a session was lost.
 */
#ifndef TM3_ASSOCIATION_H
#define TM3_ASSOCIATION_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/wire/destination.h"

struct association;
struct associations;
struct proxy;

enum { ASSOCIATIONS_MAX = 1024 };	/* at a time */

struct associations *associations_new(struct proxy *p);
/* Resets all control connections. NULL is allowed. */
void associations_free(struct associations *all);

/*
 * For @control, a client's connection, which asked for it and named @from, which may be
 * 0.0.0.0:0. The connection is still the caller's. NULL: it cannot be, and that was said.
 */
struct association *association_new(struct associations *all, int control,
				    const struct destination *from);
/* Where its client has to send to. */
const struct sockaddr_storage *association_addr(const struct association *a);
/* The client knows; its connection is the association's from here on. */
void association_start(struct association *a);
void association_free(struct association *a);

void associations_print(const struct associations *all, FILE *out);

#endif
