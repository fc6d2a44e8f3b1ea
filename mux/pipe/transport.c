/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/reject.h"
#include "../base/sock.h"
#include "sctp.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#ifndef MPTCP_INFO
#define MPTCP_INFO 1
#endif
#ifndef MPTCP_INFO_FLAG_FALLBACK
#define MPTCP_INFO_FLAG_FALLBACK 1
#endif

static const struct {
	const char *title;
	int protocol;
} transports[TRANSPORTS] = {
	[TRANSPORT_TCP] = { "TCP", IPPROTO_TCP },
	[TRANSPORT_MPTCP] = { "MPTCP", IPPROTO_MPTCP },
	[TRANSPORT_SCTP] = { "SCTP", IPPROTO_SCTP },
};

static int open_socket(enum transport t, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			transports[t].protocol);

	return fd < 0 ? -errno : fd;
}

int transport_socket(enum transport t, int family)
{
	int fd = open_socket(t, family);

	if (fd >= 0 && t == TRANSPORT_SCTP)
		sctp_prepare(fd);
	return fd;
}

int transport_set_try(const struct transport_set *set, char *why,
		      size_t why_len)
{
	unsigned int i;

	for (i = 0; i < set->n; i++) {
		enum transport t = set->kind[i];
		int fd = t == TRANSPORT_TCP ? -1 : open_socket(t, AF_INET);

		if (t == TRANSPORT_TCP)
			continue;
		if (fd >= 0) {
			close(fd);
			continue;
		}
		/* Of all it may lack, only MPTCP can be there and be off. */
		if (t == TRANSPORT_MPTCP && fd == -ENOPROTOOPT)
			return reject(why, why_len, "mptcp: MPTCP is off here (sysctl net.mptcp.enabled)");
		if (sock_is_shortage(-fd))
			return reject(why, why_len, "%s: whether this kernel has %s cannot be tried: %s",
				      transport_name(t), transports[t].title,
				      strerror(-fd));
		return reject(why, why_len, "%s: this kernel has no %s (%s)",
			      transport_name(t), transports[t].title,
			      strerror(-fd));
	}
	return 0;
}

enum transport transport_of(int fd)
{
	socklen_t len = sizeof(int);
	int protocol = IPPROTO_TCP;
	unsigned int i;

	getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
	for (i = 0; i < TRANSPORTS; i++) {
		if (transports[i].protocol == protocol)
			return (enum transport)i;
	}
	return TRANSPORT_TCP;
}

bool transport_fell_back(int fd)
{
	/* As much of linux/mptcp.h's struct mptcp_info as matters. */
	struct {
		uint8_t counts[6];
		uint32_t flags;
	} info = { .flags = 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &info, &len) < 0 ||
	       info.flags & MPTCP_INFO_FLAG_FALLBACK;
}
