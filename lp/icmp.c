/* SPDX-License-Identifier: MIT */
#include "icmp.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "../mux/base/addr.h"

enum {
	HEAD = 8,		/* of ICMP, and of UDP */
	IPV4_HEAD = 20,
	IPV6_HEAD = 40,
	DONT_FRAGMENT = 0x40,	/* in the first byte of flags and offset */
	HOPS = 64,		/* what the packet had left is not known */
};

/* As in linux/icmp.h, which cannot be read beside musl's own headers. */
enum {
	ICMP_DEST_UNREACH = 3,
	ICMP_FRAG_NEEDED = 4,
	ICMP_FILTER = 1,
};

/* --- sockets --- */

static int open_raw(int family, int protocol)
{
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			protocol);

	return fd < 0 ? -errno : fd;
}

/* Or the kernel would put a copy of each ICMP packet of this host there. */
static void hear_nothing(const struct icmp *icmp)
{
	const uint32_t none = UINT32_MAX;
	struct icmp6_filter none6;

	if (icmp->fd >= 0)
		setsockopt(icmp->fd, SOL_RAW, ICMP_FILTER, &none, sizeof(none));
	ICMP6_FILTER_SETBLOCKALL(&none6);
	if (icmp->fd6 >= 0)
		setsockopt(icmp->fd6, IPPROTO_ICMPV6, ICMP6_FILTER, &none6,
			   sizeof(none6));
}

void icmp_open(struct icmp *icmp)
{
	icmp->fd = open_raw(AF_INET, IPPROTO_ICMP);
	icmp->fd6 = open_raw(AF_INET6, IPPROTO_ICMPV6);
	hear_nothing(icmp);
}

void icmp_close(struct icmp *icmp)
{
	if (icmp->fd >= 0)
		close(icmp->fd);
	if (icmp->fd6 >= 0)
		close(icmp->fd6);
	icmp->fd = icmp->fd6 = -EBADF;
}

static int socket_for(const struct icmp *icmp, int family)
{
	return family == AF_INET6 ? icmp->fd6 : icmp->fd;
}

int icmp_can(const struct icmp *icmp, int family)
{
	int fd = socket_for(icmp, family);

	return fd < 0 ? fd : 0;
}

/* --- the message --- */

static void put_u16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put_sum(uint8_t *at, const uint8_t *buf, size_t len)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < len; i += 2)
		sum += (uint32_t)buf[i] << 8 | buf[i + 1];
	while (sum >> 16)
		sum = (sum & UINT16_MAX) + (sum >> 16);
	put_u16(at, ~sum);
}

/* As it was, but for its sum, which nobody told. */
static size_t put_udp(uint8_t *buf, const struct sockaddr_storage *from,
		      const struct sockaddr_storage *to, size_t len)
{
	put_u16(buf, addr_port(from));
	put_u16(buf + 2, addr_port(to));
	put_u16(buf + 4, HEAD + len);
	return HEAD;
}

static size_t put_ipv4(uint8_t *buf, const struct sockaddr_storage *from,
		       const struct sockaddr_storage *to, size_t len)
{
	buf[0] = 0x45;
	put_u16(buf + 2, IPV4_HEAD + HEAD + len);
	buf[6] = DONT_FRAGMENT;
	buf[8] = HOPS;
	buf[9] = IPPROTO_UDP;
	addr_v4(from, buf + 12);
	addr_v4(to, buf + 16);
	put_sum(buf + 10, buf, IPV4_HEAD);
	return IPV4_HEAD;
}

static void put_address(uint8_t *at, const struct sockaddr_storage *addr)
{
	struct sockaddr_in6 in6;

	memcpy(&in6, addr, sizeof(in6));
	memcpy(at, &in6.sin6_addr, sizeof(in6.sin6_addr));
}

static size_t put_ipv6(uint8_t *buf, const struct sockaddr_storage *from,
		       const struct sockaddr_storage *to, size_t len)
{
	buf[0] = 0x60;
	put_u16(buf + 4, HEAD + len);
	buf[6] = IPPROTO_UDP;
	buf[7] = HOPS;
	put_address(buf + 8, from);
	put_address(buf + 24, to);
	return IPV6_HEAD;
}

size_t icmp_put_too_big(uint8_t *buf, const struct sockaddr_storage *from,
			const struct sockaddr_storage *to, size_t len,
			unsigned int mtu)
{
	bool six = from->ss_family == AF_INET6;
	size_t n = HEAD;

	memset(buf, 0, ICMP_TOO_BIG_MAX);
	buf[0] = six ? ICMP6_PACKET_TOO_BIG : ICMP_DEST_UNREACH;
	buf[1] = six ? 0 : ICMP_FRAG_NEEDED;
	put_u16(buf + 6, mtu);
	n += six ? put_ipv6(buf + n, from, to, len) :
		   put_ipv4(buf + n, from, to, len);
	n += put_udp(buf + n, from, to, len);
	if (!six)
		put_sum(buf + 2, buf, n);
	return n;
}

int icmp_too_big(const struct icmp *icmp, const struct sockaddr_storage *from,
		 const struct sockaddr_storage *to, size_t len,
		 unsigned int mtu)
{
	uint8_t buf[ICMP_TOO_BIG_MAX];
	struct sockaddr_storage program = *from;
	size_t n = icmp_put_too_big(buf, from, to, len, mtu);
	int fd = socket_for(icmp, from->ss_family);

	if (fd < 0)
		return fd;
	addr_set_port(&program, 0);	/* that is what a raw socket has */
	if (sendto(fd, buf, n, 0, (const struct sockaddr *)&program,
		   addr_size(&program)) < 0)
		return -errno;
	return 0;
}
