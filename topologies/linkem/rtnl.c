/* SPDX-License-Identifier: MIT */
#include "rtnl.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
	struct nlmsghdr header;
	struct ifinfomsg info;
	struct rtattr attribute;
	uint32_t value;
};

int rtnl_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

/* Sends and receives one message; its length, or -errno. */
static int ask(int fd, const struct request *request, void *answer,
	       size_t room)
{
	ssize_t n;

	if (send(fd, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	n = recv(fd, answer, room, 0);
	return n < 0 ? -errno : (int)n;
}

int rtnl_set_gso_max_segs(int fd, int ifindex, uint32_t segs)
{
	struct request request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_NEWLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.info = { .ifi_index = ifindex },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(uint32_t)),
			       .rta_type = IFLA_GSO_MAX_SEGS },
		.value = segs,
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[1024];
	} answer;
	int n = ask(fd, &request, &answer, sizeof(answer));

	if (n < 0)
		return n;
	if (answer.header.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.error.error;
}

static void take(const struct rtattr *attribute, struct rtnl_link *link)
{
	struct rtnl_link_stats64 stats;

	if (attribute->rta_type == IFLA_GSO_MAX_SEGS) {
		memcpy(&link->gso_max_segs, RTA_DATA(attribute),
		       sizeof(link->gso_max_segs));
	} else if (attribute->rta_type == IFLA_STATS64) {
		size_t n = RTA_PAYLOAD(attribute);

		memset(&stats, 0, sizeof(stats));
		memcpy(&stats, RTA_DATA(attribute),
		       n < sizeof(stats) ? n : sizeof(stats));
		link->tx_dropped = stats.tx_dropped;
		link->rx_dropped = stats.rx_dropped;
	}
}

int rtnl_get(int fd, int ifindex, struct rtnl_link *link)
{
	struct request request = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(request.info)),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST },
		.info = { .ifi_index = ifindex },
	};
	union {
		struct nlmsghdr header;
		char bytes[16384];
	} answer;
	struct rtattr *attribute;
	int n = ask(fd, &request, &answer, sizeof(answer));
	int left;

	memset(link, 0, sizeof(*link));
	if (n < 0)
		return n;
	if (answer.header.nlmsg_type != RTM_NEWLINK)
		return -ENODEV;
	attribute = IFLA_RTA(NLMSG_DATA(&answer.header));
	left = (int)IFLA_PAYLOAD(&answer.header);
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		take(attribute, link);
	return 0;
}
