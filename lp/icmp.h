/* SPDX-License-Identifier: MIT */
/*
 * Tells the kernel of a program, as a router on the way would, that a packet of the program's
 * is larger than the path takes: ICMP "fragmentation needed", or ICMPv6 "packet too big".
 * The program then has EMSGSIZE and IP_MTU as on a path without proxies, or its kernel
 * fragments what it sends there.
 */
#ifndef TM3_ICMP_H
#define TM3_ICMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct icmp {
	int fd, fd6;		/* raw sockets, which nothing is read from; or -errno */
};

enum { ICMP_TOO_BIG_MAX = 8 + 40 + 8 };

/* It takes CAP_NET_RAW. Before sandbox_enter(), which forbids such sockets. */
void icmp_open(struct icmp *icmp);
void icmp_close(struct icmp *icmp);
/* 0, or -errno: there is no socket for @family. */
int icmp_can(const struct icmp *icmp, int family);

/*
 * To @from, about its datagram of @len bytes to @to: a packet has @mtu bytes at most, IP's
 * header included. 0 or -errno.
 */
int icmp_too_big(const struct icmp *icmp, const struct sockaddr_storage *from,
		 const struct sockaddr_storage *to, size_t len,
		 unsigned int mtu);
/* The message alone, ICMP_TOO_BIG_MAX bytes at most: how many. In ICMPv6 its sum is the kernel's. */
size_t icmp_put_too_big(uint8_t *buf, const struct sockaddr_storage *from,
			const struct sockaddr_storage *to, size_t len,
			unsigned int mtu);

#endif
