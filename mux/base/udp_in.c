/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "udp_in.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* Of Linux; libraries are late with them. */
#ifndef IPV6_RECVORIGDSTADDR
#define IPV6_RECVORIGDSTADDR 74
#endif
#ifndef IPV6_ORIGDSTADDR
#define IPV6_ORIGDSTADDR IPV6_RECVORIGDSTADDR
#endif

struct slots {
	struct mmsghdr msg[UDP_IN_MOST];
	struct iovec iov[UDP_IN_MOST];
	struct sockaddr_storage from[UDP_IN_MOST];
	uint8_t buf[UDP_IN_MOST][UDP_IN_SLOT];
};

static void prepare(struct slots *s)
{
	int i;

	for (i = 0; i < UDP_IN_MOST; i++) {
		s->iov[i] = (struct iovec){ s->buf[i], UDP_IN_SLOT };
		s->from[i] = (struct sockaddr_storage){ 0 };
		s->msg[i].msg_hdr = (struct msghdr){
			.msg_name = &s->from[i],
			.msg_namelen = sizeof(s->from[i]),
			.msg_iov = &s->iov[i],
			.msg_iovlen = 1,
		};
	}
}

/* An error that is met behind a datagram is kept by the kernel for the next call. */
static int receive(int fd, struct slots *s)
{
	int n = recvmmsg(fd, s->msg, UDP_IN_MOST, MSG_TRUNC | MSG_DONTWAIT,
			 NULL);

	return n < 0 ? -errno : n;
}

int udp_in_read(int fd, udp_in_came *came, void *arg)
{
	struct slots s;
	int i, n;

	prepare(&s);
	n = receive(fd, &s);
	if (n < 0)
		return n;
	for (i = 0; i < n; i++)
		came(arg, &s.from[i], s.buf[i], s.msg[i].msg_len);
	return 0;
}

/* --- with where they were sent to --- */

union told {
	struct cmsghdr head;	/* for its alignment */
	uint8_t bytes[CMSG_SPACE(sizeof(struct sockaddr_in6))];
};

int udp_in_tell_to(int fd, int family)
{
	int on = 1, err;

	if (family == AF_INET6)
		err = setsockopt(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &on,
				 sizeof(on));
	else
		err = setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &on,
				 sizeof(on));
	return err ? -errno : 0;
}

static size_t told_size(const struct cmsghdr *cm)
{
	if (cm->cmsg_level == IPPROTO_IP && cm->cmsg_type == IP_ORIGDSTADDR)
		return sizeof(struct sockaddr_in);
	if (cm->cmsg_level == IPPROTO_IPV6 && cm->cmsg_type == IPV6_ORIGDSTADDR)
		return sizeof(struct sockaddr_in6);
	return 0;
}

static void sent_to(struct msghdr *mh, struct sockaddr_storage *to)
{
	struct cmsghdr *cm;
	size_t size;

	memset(to, 0, sizeof(*to));
	for (cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		size = told_size(cm);
		if (size && cm->cmsg_len >= CMSG_LEN(size))
			memcpy(to, CMSG_DATA(cm), size);
	}
}

int udp_in_read_to(int fd, udp_in_came_to *came, void *arg)
{
	union told told[UDP_IN_MOST];
	struct sockaddr_storage to;
	struct slots s;
	int i, n;

	prepare(&s);
	for (i = 0; i < UDP_IN_MOST; i++) {
		s.msg[i].msg_hdr.msg_control = told[i].bytes;
		s.msg[i].msg_hdr.msg_controllen = sizeof(told[i].bytes);
	}
	n = receive(fd, &s);
	if (n < 0)
		return n;
	for (i = 0; i < n; i++) {
		sent_to(&s.msg[i].msg_hdr, &to);
		came(arg, &s.from[i], &to, s.buf[i], s.msg[i].msg_len);
	}
	return 0;
}
