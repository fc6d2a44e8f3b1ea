/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "udp_in.h"

#include <errno.h>

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
int udp_in_read(int fd, udp_in_came *came, void *arg)
{
	struct slots s;
	int i, n;

	prepare(&s);
	n = recvmmsg(fd, s.msg, UDP_IN_MOST, MSG_TRUNC | MSG_DONTWAIT, NULL);
	if (n < 0)
		return -errno;
	for (i = 0; i < n; i++)
		came(arg, &s.from[i], s.buf[i], s.msg[i].msg_len);
	return 0;
}
