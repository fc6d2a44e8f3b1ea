/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lp.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENING = 10 };	/* TCP_LISTEN */

bool lp_can_be_reached(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = { .ifr_name = "lo" };
	bool up = fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &lo) &&
		  lo.ifr_flags & IFF_UP;

	if (fd >= 0)
		close(fd);
	return up;
}

/* Bound to loopback, or to no address at all. */
static bool is_at_loopback(const struct inet_diag_msg *m)
{
	static const struct in6_addr any = IN6ADDR_ANY_INIT, lo6 = IN6ADDR_LOOPBACK_INIT;
	const void *addr = m->id.idiag_src;

	if (m->idiag_family == AF_INET)
		return !m->id.idiag_src[0] ||
		       m->id.idiag_src[0] == htonl(INADDR_LOOPBACK);
	return !memcmp(addr, &any, 16) || !memcmp(addr, &lo6, 16);
}

static uint64_t cgroup_of(struct inet_diag_msg *m, int len)
{
	struct rtattr *it = (void *)(m + 1);
	uint64_t id = 0;

	len -= (int)NLMSG_LENGTH(sizeof(*m));
	for (; RTA_OK(it, len); it = RTA_NEXT(it, len)) {
		if (it->rta_type == INET_DIAG_CGROUP_ID)
			memcpy(&id, RTA_DATA(it), sizeof(id));
	}
	return id;
}

static bool ask(int fd, int family)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 what;
	} question = {
		.head = {
			.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.what = {
			.sdiag_family = (__u8)family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = 1 << LISTENING,
		},
	};

	return send(fd, &question, sizeof(question), 0) == sizeof(question);
}

bool lp_listens(int family, __be16 port, uint64_t *cgroup)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	_Alignas(struct nlmsghdr) char buf[32768];
	struct inet_diag_msg *m;
	struct nlmsghdr *it;
	bool found = false, more = fd >= 0 && ask(fd, family);
	int len;

	*cgroup = 0;
	while (more) {
		len = (int)recv(fd, buf, sizeof(buf), 0);
		more = len > 0;
		for (it = (void *)buf; more && NLMSG_OK(it, len); it = NLMSG_NEXT(it, len)) {
			m = NLMSG_DATA(it);
			if (it->nlmsg_type != SOCK_DIAG_BY_FAMILY) {
				more = false;
			} else if (m->id.idiag_sport == port && is_at_loopback(m)) {
				found = true;
				*cgroup = cgroup_of(m, (int)it->nlmsg_len);
			}
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}
