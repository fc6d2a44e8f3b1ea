/* SPDX-License-Identifier: MIT */
#include "path_mtu.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

static bool is_ipv6(int fd)
{
	int family = AF_UNSPEC;
	socklen_t len = sizeof(family);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	return family == AF_INET6;
}

int path_mtu(int fd)
{
	bool six = is_ipv6(fd);
	int mtu;
	socklen_t len = sizeof(mtu);

	return getsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP,
			  six ? IPV6_MTU : IP_MTU, &mtu, &len) ? -errno : mtu;
}

void path_mtu_forbid_fragments(int fd, bool on)
{
	int how;

	if (is_ipv6(fd)) {
		how = on ? IPV6_PMTUDISC_DO : IPV6_PMTUDISC_WANT;
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &how,
			   sizeof(how));
	} else {
		how = on ? IP_PMTUDISC_DO : IP_PMTUDISC_WANT;
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &how, sizeof(how));
	}
}
