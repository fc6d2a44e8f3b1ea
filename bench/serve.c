// SPDX-License-Identifier: MIT
/*
 * The server side of the load generator: one thread, epoll. Where bytes need
 * not be looked at they are not even copied (MSG_TRUNC), so that the
 * measurement shows the proxy and not its load.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"

struct client {
	int fd;
	size_t have;			/* bytes of the request */
	struct load_request request;
	uint64_t done;			/* bytes sent or received */
	uint64_t right;			/* of these, as they should be */
	size_t echo_from, echo_to;	/* what is still to be echoed */
	int writing;			/* waits for EPOLLOUT */
	uint8_t echo[4096];
};

enum verdict { GO_ON, BLOCKED, OVER };

/* What a failed or empty send or recv means. */
static enum verdict judge(ssize_t n)
{
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return BLOCKED;
	return OVER;
}

static enum verdict read_request(struct client *c)
{
	ssize_t n = recv(c->fd, (uint8_t *)&c->request + c->have,
			 sizeof(c->request) - c->have, 0);

	if (n <= 0)
		return judge(n);
	c->have += (size_t)n;
	if (c->have < sizeof(c->request))
		return GO_ON;
	return c->request.magic == LOAD_MAGIC ? GO_ON : OVER;
}

static enum verdict source(struct client *c)
{
	uint64_t left = c->request.bytes - c->done;
	size_t len = left < PATTERN_CHUNK ? left : PATTERN_CHUNK;
	ssize_t n = send(c->fd, pattern_at(c->done), len, MSG_NOSIGNAL);

	if (n <= 0)
		return judge(n);
	c->done += (uint64_t)n;
	return GO_ON;
}

/* Eight bytes into an empty send buffer: they go whole or not at all. */
static enum verdict answer_count(struct client *c)
{
	ssize_t n = send(c->fd, &c->right, sizeof(c->right), MSG_NOSIGNAL);

	return n == sizeof(c->right) ? GO_ON : OVER;
}

static enum verdict sink(struct client *c)
{
	ssize_t n = recv(c->fd, NULL, PATTERN_CHUNK * 8, MSG_TRUNC);

	if (n <= 0)
		return judge(n);
	c->done += (uint64_t)n;
	c->right = c->done;
	return c->done == c->request.bytes ? answer_count(c) : GO_ON;
}

static enum verdict sink_checking(struct client *c)
{
	static uint8_t buf[PATTERN_CHUNK];
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0);

	if (n <= 0)
		return judge(n);
	if (c->right == c->done)
		c->right += pattern_match(buf, (size_t)n, c->done);
	c->done += (uint64_t)n;
	return c->done == c->request.bytes ? answer_count(c) : GO_ON;
}

static enum verdict echo_back(struct client *c)
{
	ssize_t n;

	if (c->echo_from == c->echo_to) {
		n = recv(c->fd, c->echo, sizeof(c->echo), 0);
		if (n <= 0)
			return judge(n);
		c->echo_from = 0;
		c->echo_to = (size_t)n;
	}
	n = send(c->fd, c->echo + c->echo_from, c->echo_to - c->echo_from,
		 MSG_NOSIGNAL);
	if (n <= 0)
		return judge(n);
	c->echo_from += (size_t)n;
	return GO_ON;
}

static enum verdict reply(struct client *c)
{
	ssize_t n = send(c->fd, "", 1, MSG_NOSIGNAL);

	if (n <= 0)
		return judge(n);
	c->done = c->request.bytes;
	return GO_ON;
}

/* Of a client that may be gone before: the thread has a descriptor of its own. */
struct paced_source {
	int fd;
	uint64_t packets;
};

static void *pace(void *arg)
{
	struct paced_source *source = arg;

	paced_bytes(source->fd, source->packets);
	close(source->fd);
	free(source);
	return NULL;
}

static enum verdict source_paced(struct client *c)
{
	struct paced_source *source = malloc(sizeof(*source));
	pthread_t thread;

	if (!source)
		return OVER;
	source->fd = dup(c->fd);
	source->packets = c->request.bytes / PACED_SIZE;
	if (source->fd < 0 || pthread_create(&thread, NULL, pace, source)) {
		close(source->fd);
		free(source);
		return OVER;
	}
	pthread_detach(thread);
	c->done = c->request.bytes;
	return GO_ON;
}

/* All is said: only the client's end is still to come. */
static enum verdict wait_for_end(struct client *c)
{
	ssize_t n = recv(c->fd, NULL, PATTERN_CHUNK, MSG_TRUNC);

	return n > 0 ? GO_ON : judge(n);
}

static enum verdict step(struct client *c)
{
	if (c->have < sizeof(c->request))
		return read_request(c);
	if (c->request.op == LOAD_ECHO)
		return echo_back(c);
	if (c->done == c->request.bytes)
		return wait_for_end(c);
	switch (c->request.op) {
	case LOAD_DOWN:
		return source(c);
	case LOAD_UP:
		return sink(c);
	case LOAD_UP_CHECK:
		return sink_checking(c);
	case LOAD_REPLY:
		return reply(c);
	case LOAD_PACED:
		return source_paced(c);
	}
	return OVER;
}

static int wants_to_write(const struct client *c)
{
	if (c->have < sizeof(c->request))
		return 0;
	if (c->request.op == LOAD_ECHO)
		return c->echo_from < c->echo_to;
	return c->done < c->request.bytes &&
	       (c->request.op == LOAD_DOWN || c->request.op == LOAD_REPLY);
}

static void run_client(int ep, struct client *c)
{
	enum verdict v;
	struct epoll_event ev;

	do
		v = step(c);
	while (v == GO_ON);
	if (v == OVER) {
		close(c->fd);
		free(c);
		return;
	}
	if (wants_to_write(c) == c->writing)
		return;
	c->writing = !c->writing;
	ev.events = c->writing ? EPOLLOUT : EPOLLIN;
	ev.data.ptr = c;
	epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev);
}

static void accept_clients(int ep, int listener)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct client *c;
	int one = 1;
	int fd;

	for (;;) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c = calloc(1, sizeof(*c));
		ev.data.ptr = c;
		if (!c || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0) {
			free(c);
			close(fd);
			continue;
		}
		c->fd = fd;
	}
}

static int open_listener(uint16_t port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(fd, 4096) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int serve(uint16_t port)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct epoll_event events[256];
	int listener = open_listener(port);
	int ep;
	int i, n;

	if (listener < 0)
		return listener;
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev) < 0)
		return -errno;
	for (;;) {
		n = epoll_wait(ep, events, 256, -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (i = 0; i < n; i++) {
			if (events[i].data.ptr)
				run_client(ep, events[i].data.ptr);
			else
				accept_clients(ep, listener);
		}
	}
}
