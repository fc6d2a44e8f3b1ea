/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "route.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* Behind sys/socket.h, which they need. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "addr.h"

enum { ANSWER_MAX = 4096, V4 = 4, V6 = 16 };

struct question {
	struct nlmsghdr head;
	struct rtmsg route;
	char attributes[2 * RTA_SPACE(V6) + RTA_SPACE(sizeof(uint32_t))];
};

/* The bytes of an address and how many they are: 4, 16, or 0. */
static size_t bytes_of(const struct sockaddr_storage *addr, uint8_t bytes[V6])
{
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr_v4(addr, bytes))
		return V4;
	if (addr->ss_family != AF_INET6)
		return 0;
	memcpy(bytes, &in6->sin6_addr, V6);
	return V6;
}

static void add(struct question *q, unsigned short type, const void *bytes,
		size_t len)
{
	struct rtattr *at = (void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	at->rta_type = type;
	at->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(at), bytes, len);
	q->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->head.nlmsg_len) +
				       RTA_SPACE(len));
}

/* @from: NULL: the kernel may choose. */
static int make_question(struct question *q, uint32_t device,
			 const struct sockaddr_storage *from,
			 const struct sockaddr_storage *to)
{
	uint8_t src[V6], dst[V6];
	size_t len = bytes_of(to, dst);

	if (!len || (from && bytes_of(from, src) != len))
		return -EAFNOSUPPORT;
	memset(q, 0, sizeof(*q));
	q->head.nlmsg_len = NLMSG_LENGTH(sizeof(q->route));
	q->head.nlmsg_type = RTM_GETROUTE;
	q->head.nlmsg_flags = NLM_F_REQUEST;
	q->route.rtm_family = len == V4 ? AF_INET : AF_INET6;
	q->route.rtm_dst_len = (uint8_t)(8 * len);
	add(q, RTA_DST, dst, len);
	if (from) {
		q->route.rtm_src_len = (uint8_t)(8 * len);
		add(q, RTA_SRC, src, len);
	}
	if (device)
		add(q, RTA_OIF, &device, sizeof(device));
	return 0;
}

/* RTA_VIA is a gateway of the other family, and begins with which one. */
static void read_attributes(struct route *r, const struct nlmsghdr *head)
{
	struct rtattr *at = RTM_RTA(NLMSG_DATA(head));
	size_t left = head->nlmsg_len - NLMSG_LENGTH(sizeof(struct rtmsg));

	for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		size_t len = RTA_PAYLOAD(at);

		if (at->rta_type == RTA_OIF && len == sizeof(r->device))
			memcpy(&r->device, RTA_DATA(at), len);
		else if (at->rta_type == RTA_GATEWAY || at->rta_type == RTA_VIA)
			memcpy(r->gateway, RTA_DATA(at),
			       len < ROUTE_GATEWAY ? len : ROUTE_GATEWAY);
	}
}

/* How long the kernel's answer is, or -errno. */
static ssize_t ask(const struct question *q, char answer[ANSWER_MAX])
{
	ssize_t n = -1;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	/* The kernel has answered by the time that send() returns. */
	if (send(fd, q, q->head.nlmsg_len, 0) >= 0)
		n = recv(fd, answer, ANSWER_MAX, 0);
	if (n < 0)
		n = -errno;
	close(fd);
	return n;
}

/* 0 if it is a route, or -errno. */
static int check_answer(const struct nlmsghdr *head, size_t len)
{
	const struct nlmsgerr *error = NLMSG_DATA(head);

	if (!NLMSG_OK(head, len))
		return -EPROTO;
	if (head->nlmsg_type == NLMSG_ERROR)
		return error->error ? error->error : -EPROTO;
	return head->nlmsg_type != RTM_NEWROUTE ||
	       head->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)) ?
	       -EPROTO : 0;
}

int route_ask(struct route *r, uint32_t device,
	      const struct sockaddr_storage *from,
	      const struct sockaddr_storage *to)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
	struct question q;
	ssize_t n;
	int err;

	memset(r, 0, sizeof(*r));
	err = make_question(&q, device, from, to);
	if (err)
		return err;
	n = ask(&q, answer);
	err = n < 0 ? (int)n : check_answer((void *)answer, (size_t)n);
	if (err)
		return err;
	read_attributes(r, (void *)answer);
	return r->device ? 0 : -EPROTO;
}

int route_ends_here(const struct sockaddr_storage *to)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
	const struct rtmsg *route = NLMSG_DATA(answer);
	struct question q;
	ssize_t n;

	if (make_question(&q, 0, NULL, to))
		return 0;
	n = ask(&q, answer);
	if (n < 0)
		return (int)n;
	return !check_answer((void *)answer, (size_t)n) &&
	       (route->rtm_type == RTN_LOCAL ||
		route->rtm_type == RTN_ANYCAST ||
		route->rtm_type == RTN_BROADCAST);
}

bool route_has_gateway(const struct route *r)
{
	static const uint8_t none[ROUTE_GATEWAY];

	return memcmp(r->gateway, none, ROUTE_GATEWAY) != 0;
}

bool route_same(const struct route *a, const struct route *b)
{
	return a->device == b->device &&
	       !memcmp(a->gateway, b->gateway, ROUTE_GATEWAY);
}
