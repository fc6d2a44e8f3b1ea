// SPDX-License-Identifier: MIT
/*
 * A server whose limit is known: each answer takes a given time, in which it does nothing else.
 * One thread. Time that it was late by, or had nothing to do, is made up for up to CREDIT_NS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ramp.h"

enum {
	EVENTS = 256,
	BACKLOG = 4096,
	CREDIT_NS = 10000000,
	READ_SIZE = 1 << 16,
};

struct peer {
	int fd;
	uint8_t have;
	uint8_t in[WIRE_QUERY];	/* the beginning of a query */
};

struct limited {
	enum kind kind;
	int epfd, listener;
	double each_ns;		/* what an answer takes */
	double free_at;		/* when the last one is done */
};

/* Waits until the next answer may be given. */
static void serve_one(struct limited *l)
{
	double now = (double)clock_ns();

	if (l->free_at < now - CREDIT_NS)
		l->free_at = now - CREDIT_NS;
	l->free_at += l->each_ns;
	if (l->free_at > now)
		clock_sleep_until((int64_t)l->free_at);
}

static void answer_datagrams(struct limited *l)
{
	uint8_t in[WIRE_QUERY], out[WIRE_PREFIX + WIRE_ANSWER];
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(l->listener, in, sizeof(in), 0,
			     (struct sockaddr *)&from, &from_len);
	size_t len = n < 0 ? 0 : wire_answer(in, (size_t)n, out);

	if (!len)
		return;
	serve_one(l);
	sendto(l->listener, out + WIRE_PREFIX, len - WIRE_PREFIX, 0,
	       (struct sockaddr *)&from, from_len);
}

/* The first query of @len bytes; how many of them it was, 0 if it is not whole, or -1. */
static int answer_first(struct limited *l, int fd, const uint8_t *buf, size_t len)
{
	uint8_t out[WIRE_PREFIX + WIRE_ANSWER];
	size_t size = len < WIRE_PREFIX ? 0 : wire_length(buf);
	size_t told;

	if (len < WIRE_PREFIX || len < WIRE_PREFIX + size)
		return size > WIRE_QUERY - WIRE_PREFIX ? -1 : 0;
	told = wire_answer(buf + WIRE_PREFIX, size, out);
	if (!told)
		return -1;
	serve_one(l);
	if (send(fd, out, told, MSG_NOSIGNAL) != (ssize_t)told)
		return -1;
	return (int)(WIRE_PREFIX + size);
}

static int answer_peer(struct limited *l, struct peer *p)
{
	static uint8_t buf[READ_SIZE];
	size_t len, at = 0;
	ssize_t n;
	int done;

	memcpy(buf, p->in, p->have);
	n = recv(p->fd, buf + p->have, sizeof(buf) - p->have, 0);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -1;
	len = p->have + (size_t)n;
	do {
		done = answer_first(l, p->fd, buf + at, len - at);
		at += done > 0 ? (size_t)done : 0;
	} while (done > 0);
	if (done < 0)
		return -1;
	p->have = (uint8_t)(len - at);
	memcpy(p->in, buf + at, p->have);
	return 0;
}

static void accept_peer(struct limited *l)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct peer *p = calloc(1, sizeof(*p));
	int one = 1;

	if (!p)
		return;
	p->fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	ev.data.ptr = p;
	if (p->fd >= 0 && epoll_ctl(l->epfd, EPOLL_CTL_ADD, p->fd, &ev) == 0) {
		setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		return;
	}
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

static int listen_on(struct limited *l, uint16_t port)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int type = l->kind == KIND_UDP ? SOCK_DGRAM : SOCK_STREAM;
	int one = 1;

	l->listener = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->listener < 0 || l->epfd < 0)
		return -errno;
	if (l->kind != KIND_UDP)
		setsockopt(l->listener, SOL_SOCKET, SO_REUSEADDR, &one,
			   sizeof(one));
	if (bind(l->listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    (l->kind != KIND_UDP && listen(l->listener, BACKLOG) < 0) ||
	    epoll_ctl(l->epfd, EPOLL_CTL_ADD, l->listener, &ev) < 0)
		return -errno;
	return 0;
}

int limited_serve(enum kind kind, uint16_t port, double rate)
{
	struct limited l = { .kind = kind, .each_ns = rate > 0 ? 1e9 / rate : 0 };
	struct epoll_event events[EVENTS];
	struct peer *p;
	int i, n, err = listen_on(&l, port);

	if (!err)
		fputs("bench-ramp: serving\n", stderr);
	while (!err) {
		n = epoll_wait(l.epfd, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (i = 0; i < n; i++) {
			p = events[i].data.ptr;
			if (!p && kind == KIND_UDP)
				answer_datagrams(&l);
			else if (!p)
				accept_peer(&l);
			else if (answer_peer(&l, p) < 0) {
				close(p->fd);
				free(p);
			}
		}
	}
	return err;
}
