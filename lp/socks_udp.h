/* SPDX-License-Identifier: MIT */
/*
 * The header that SOCKS5 (RFC 1928) puts in front of each datagram: where it is to go,
 * or where it came from. No sockets, no clock.
 *
 * Fragments are not put together, which the RFC leaves open: they are dropped.
 */
#ifndef TM3_SOCKS_UDP_H
#define TM3_SOCKS_UDP_H

#include <stddef.h>
#include <stdint.h>

#include "../mux/wire/destination.h"

enum socks_udp_verdict {
	SOCKS_UDP_SOUND,
	SOCKS_UDP_FRAGMENT,
	SOCKS_UDP_GARBAGE,	/* no such header, or it names no address */
};

/* Of an IPv6 address: what is put is never longer. */
enum { SOCKS_UDP_HEAD_MAX = 4 + 16 + 2 };

/* Reads the header of a datagram of @len bytes; the payload begins at *@head. */
enum socks_udp_verdict socks_udp_get(const uint8_t *buf, size_t len,
				     struct destination *to, size_t *head);

/* Writes the header for what came from @from, an address; its size, or 0 if it is none. */
size_t socks_udp_put(uint8_t head[SOCKS_UDP_HEAD_MAX],
		     const struct destination *from);

#endif
