/* SPDX-License-Identifier: MIT */
/*
 * How the kernel would send a packet from one address to another just now. Two
 * answers that differ tell that what was sent before takes another way from here.
 *
 * No part of the answer says whether anything arrives.
 */
#ifndef TM3_ROUTE_H
#define TM3_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ROUTE_GATEWAY = 16 };

struct route {
	uint32_t device;		/* 0: it is not known */
	uint8_t gateway[ROUTE_GATEWAY];	/* zeros: there is none */
};

/*
 * @device: its index, where packets may leave by that one alone; 0: by any. 0, or -errno:
 * there is no way, or @from is none of this host's (IPv4), and @r is not known then.
 */
int route_ask(struct route *r, uint32_t device,
	      const struct sockaddr_storage *from,
	      const struct sockaddr_storage *to);
/*
 * Does this host itself receive what it sends to @to: is the route one of type local, anycast or
 * broadcast? Such a route need not belong to an address of a device. 1 or 0; also 0 where
 * there is no way. -errno: the kernel could not be asked.
 */
int route_ends_here(const struct sockaddr_storage *to);
/* Is there a gateway? */
bool route_has_gateway(const struct route *r);
bool route_same(const struct route *a, const struct route *b);

#endif
