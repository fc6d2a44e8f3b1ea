/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "handed.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "addr.h"
#include "log.h"
#include "reject.h"
#include "sock.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

enum { FIRST = 3 };

static int option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

static bool listens(int fd)
{
	int protocol = option(fd, SO_PROTOCOL);

	return option(fd, SO_ACCEPTCONN) == 1 &&
	       (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP);
}

static int look_at(struct handed_socket *s, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	s->fd = fd;
	if (flags < 0 || !listens(fd))
		return -1;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	return sock_address(fd, &s->addr);
}

/* Names are separated by colons; there may be fewer of them. */
static void name_all(struct handed *h, const char *names)
{
	unsigned int i;

	for (i = 0; names && *names && i < h->n; i++) {
		size_t len = strcspn(names, ":");

		snprintf(h->socket[i].name, HANDED_NAME, "%.*s", (int)len,
			 names);
		names += len;
		names += *names == ':';
	}
}

static int look_at_all(struct handed *h, const char *fds, char *why,
		       size_t why_len)
{
	char *end;
	unsigned long n = strtoul(fds, &end, 10);
	unsigned int i;

	if (*end || n > HANDED_MAX)
		return reject(why, why_len, "LISTEN_FDS: '%s' is not a number "
			      "from 0 to %d", fds, HANDED_MAX);
	for (i = 0; i < n; i++) {
		if (look_at(&h->socket[i], FIRST + (int)i))
			return reject(why, why_len, "LISTEN_FDS: descriptor %u "
				      "is no listening socket of TCP or MPTCP",
				      FIRST + i);
		h->n++;
	}
	name_all(h, getenv("LISTEN_FDNAMES"));
	return 0;
}

int handed_init(struct handed *h, char *why, size_t why_len)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int err = 0;

	memset(h, 0, sizeof(*h));
	if (pid && fds && strtol(pid, NULL, 10) == getpid())
		err = look_at_all(h, fds, why, why_len);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return err;
}

void handed_fini(struct handed *h)
{
	while (h->n)
		close(h->socket[--h->n].fd);
}

void handed_offer(struct handed *h)
{
	unsigned int i;

	for (i = 0; i < h->n; i++)
		h->socket[i].taken = false;
}

int handed_take(struct handed_socket *s)
{
	int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	s->taken = true;
	return fd;
}

struct handed_socket *handed_named(struct handed *h, const char *name)
{
	unsigned int i;

	for (i = 0; i < h->n; i++) {
		if (!h->socket[i].taken && !strcmp(h->socket[i].name, name))
			return &h->socket[i];
	}
	return NULL;
}

struct handed_socket *handed_at(struct handed *h,
				const struct sockaddr_storage *addr)
{
	unsigned int i;

	for (i = 0; i < h->n; i++) {
		if (!h->socket[i].taken && addr_same(&h->socket[i].addr, addr))
			return &h->socket[i];
	}
	return NULL;
}

int handed_all_taken(const struct handed *h, struct log *log, const char *what)
{
	char text[ADDR_TEXT];
	unsigned int i = 0;

	while (i < h->n && h->socket[i].taken)
		i++;
	if (i == h->n)
		return 0;
	log_error(log, "a socket on %s was handed over by the name '%s', which is %s",
		  addr_text(&h->socket[i].addr, text), h->socket[i].name, what);
	return -EINVAL;
}
