/* SPDX-License-Identifier: MIT */
#include "origin.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/sock.h"

enum {
	KIND_END = 0,
	KIND_NOTHING = 1,
	KIND_ORIGIN = 253,
	LEN_V4 = 2 + 4 + 2,
	LEN_V6 = 2 + 16 + 2,
	IP4_MIN = 20,
	IP6_HEADER = 40,
	TCP_MIN = 20,
	IP4_PROTOCOL_AT = 9,
	IP6_NEXT_AT = 6,
	TCP_OFFSET_AT = 12,
	HEADERS_MAX = 60 + 60,
};

void origin_keep_syns(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_SAVE_SYN, &one, sizeof(one));
}

/* Bytes of the IP header, if TCP follows; or 0. */
static size_t ip_header(const uint8_t *syn, size_t len)
{
	size_t header;

	if (len >= IP6_HEADER && syn[0] >> 4 == 6)
		return syn[IP6_NEXT_AT] == IPPROTO_TCP ? IP6_HEADER : 0;
	if (len < IP4_MIN || syn[0] >> 4 != 4)
		return 0;
	header = 4u * (syn[0] & 15);
	return header >= IP4_MIN && syn[IP4_PROTOCOL_AT] == IPPROTO_TCP ?
	       header : 0;
}

/* What is behind @option's two first bytes. */
static int read_option(const uint8_t *option, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *in6 = (void *)to;
	struct sockaddr_in *in = (void *)to;

	memset(to, 0, sizeof(*to));
	switch (option[1]) {
	case LEN_V4:
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, option + 2, 4);
		memcpy(&in->sin_port, option + 6, 2);
		return 0;
	case LEN_V6:
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, option + 2, 16);
		memcpy(&in6->sin6_port, option + 18, 2);
		return 0;
	default:
		return -ENOENT;
	}
}

static int in_options(const uint8_t *p, const uint8_t *end,
		      struct sockaddr_storage *to)
{
	while (p < end && *p != KIND_END) {
		if (*p == KIND_NOTHING) {
			p++;
			continue;
		}
		if (end - p < 2 || p[1] < 2 || p[1] > end - p)
			break;
		if (*p == KIND_ORIGIN)
			return read_option(p, to);
		p += p[1];
	}
	return -ENOENT;
}

int origin_in_syn(const uint8_t *syn, size_t len, struct sockaddr_storage *to)
{
	size_t ip = ip_header(syn, len), tcp;

	if (!ip || len < ip + TCP_MIN)
		return -ENOENT;
	tcp = 4u * (syn[ip + TCP_OFFSET_AT] >> 4);
	if (tcp < TCP_MIN || len < ip + tcp)
		return -ENOENT;
	return in_options(syn + ip + TCP_MIN, syn + ip + tcp, to);
}

int origin_of(int fd, struct sockaddr_storage *to)
{
	struct sockaddr_storage here;
	uint8_t syn[HEADERS_MAX];
	socklen_t len = sizeof(syn);

	if (getsockopt(fd, IPPROTO_TCP, TCP_SAVED_SYN, syn, &len) ||
	    origin_in_syn(syn, len, to))
		return -ENOENT;
	if (sock_address(fd, &here) || !addr_is_loopback(&here))
		return -ENOENT;
	return 0;
}
