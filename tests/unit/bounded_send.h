/* SPDX-License-Identifier: MIT */
/*
 * The kernel's send(), but for how much one socket takes, and how often. For the test that includes
 * it: the function is defined here.
 */
#ifndef TM3_TEST_BOUNDED_SEND_H
#define TM3_TEST_BOUNDED_SEND_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct bounded_send {
	int fd;			/* the socket's; -1: none is looked at */
	bool bounded;		/* it takes so many bytes more */
	size_t takes;
	int err;		/* why it takes no more than those; 0: it is full */
	unsigned int refused;	/* calls in which it took none, */
	unsigned int calls;	/* in which it took some, */
	unsigned int more;	/* and of them, those that told of more */
} bounded_send;

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct bounded_send *b = &bounded_send;

	if (fd == b->fd) {
		if (b->bounded && len > b->takes)
			len = b->takes;
		if (b->bounded)
			b->takes -= len;
		b->calls += len > 0;
		b->more += len > 0 && flags & MSG_MORE;
		b->refused += !len;
		if (!len) {
			errno = b->err ? b->err : EAGAIN;
			return -1;
		}
	}
	return syscall(SYS_sendto, fd, buf, len, flags, NULL, 0);
}

#endif
