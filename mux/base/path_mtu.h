/* SPDX-License-Identifier: MIT */
/*
 * How large a packet of a UDP socket may be, IP's header included, that passes without being
 * fragmented: what the kernel knows of the way, from the device, the route, and ICMP errors.
 */
#ifndef TM3_PATH_MTU_H
#define TM3_PATH_MTU_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* A datagram of so many bytes is a packet of so many. */
static inline size_t path_mtu_packet(int family, size_t len)
{
	return len + (family == AF_INET6 ? 40 : 20) + 8;
}

/* Of a connected socket; or -errno. */
int path_mtu(int fd);

/*
 * What is sent by @fd from now on leaves whole or not at all (EMSGSIZE); or, if not @on, in
 * fragments where it has to, as by default.
 */
void path_mtu_forbid_fragments(int fd, bool on);

#endif
