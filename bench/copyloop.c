/* SPDX-License-Identifier: MIT */
/*
 * The limit for a relay in user space: recv() and send(), 256 KB at a time, and nothing else.
 *
 *	copyloop LISTEN-PORT TO-PORT plain|frame|unframe|mptcp-out|mptcp-in
 *
 * Two of them in a row are what lp and rp would be if they only copied. Each connection has a
 * connection of its own to TO-PORT. frame: what goes there has a header of eight bytes in front
 * of each 4096, and what comes from there has had; unframe is the other end of that. What is
 * framed is read into its place and what was is written from where it lies, so that framing costs
 * what its headers cost. mptcp-out: plain, and the connections to TO-PORT are MPTCP's;
 * mptcp-in: those that come are.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262	/* headers older than the kernel's */
#endif

enum {
	PAYLOAD = 4096,
	HEADER = 8,
	FRAMES = 64,
	CHUNK = FRAMES * PAYLOAD,
	FRAMED = FRAMES * (PAYLOAD + HEADER),
	PARTS = 128,		/* that one call writes */
	BATCH = 128,
	BACKLOG = 4096,
	MODES = 5,
};

#define MODE_NAMES "plain|frame|unframe|mptcp-out|mptcp-in"

enum mode { PLAIN, FRAME, UNFRAME };

struct end {
	int fd;
	struct link *link;
	enum mode mode;		/* what becomes of what it brings */
	uint8_t *rest;		/* of that, what the other end did not take yet */
	size_t len, at;
	uint8_t head[HEADER];	/* UNFRAME: of the frame that is to come */
	size_t head_len, payload_left;
	bool ended;
};

struct link {
	struct end end[2];
	struct link *dead;	/* in the list of those to be freed */
	bool gone;
};

static struct {
	int epfd, listener;
	struct sockaddr_in to;
	enum mode out, in;	/* of the connection that came, and of the other one */
	int protocol_out, protocol_in;
	struct link *dead;
	uint8_t buf[FRAMED];
} loop;

static void fail(const char *what)
{
	fprintf(stderr, "copyloop: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void set(int fd, int level, int name)
{
	int on = 1;

	setsockopt(fd, level, name, &on, sizeof(on));
}

static void drop(struct link *l)
{
	if (l->gone)
		return;
	l->gone = true;
	close(l->end[0].fd);
	close(l->end[1].fd);
	l->dead = loop.dead;
	loop.dead = l;
}

static void free_dead(void)
{
	while (loop.dead) {
		struct link *l = loop.dead;

		loop.dead = l->dead;
		free(l->end[0].rest);
		free(l->end[1].rest);
		free(l);
	}
}

static struct end *other(struct end *e)
{
	return e == &e->link->end[0] ? &e->link->end[1] : &e->link->end[0];
}

/* --- out --- */

/* What @iov has behind the first @skip bytes waits. False: no memory. */
static bool keep(struct end *e, const struct iovec *iov, int n, size_t skip)
{
	int i;

	if (!e->rest)
		e->rest = malloc(FRAMED);
	e->len = e->at = 0;
	for (i = 0; e->rest && i < n; i++) {
		size_t part = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		memcpy(e->rest + e->len, (uint8_t *)iov[i].iov_base + part,
		       iov[i].iov_len - part);
		e->len += iov[i].iov_len - part;
		skip -= part;
	}
	return e->rest;
}

/* False: it is over. */
static bool write_out(struct end *e, const struct iovec *iov, int n, size_t len)
{
	struct msghdr mh = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
	ssize_t wrote = sendmsg(other(e)->fd, &mh, MSG_NOSIGNAL);

	if (wrote < 0 && errno != EAGAIN)
		return false;
	if (wrote < 0)
		wrote = 0;
	return (size_t)wrote == len || keep(e, iov, n, (size_t)wrote);
}

static bool write_rest(struct end *e)
{
	while (e->at < e->len) {
		ssize_t n = send(other(e)->fd, e->rest + e->at, e->len - e->at, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN;
		e->at += (size_t)n;
	}
	return true;
}

/* --- in --- */

static ssize_t copy_plain(struct end *e, bool *sound)
{
	ssize_t n = recv(e->fd, loop.buf, CHUNK, 0);
	struct iovec iov = { loop.buf, n > 0 ? (size_t)n : 0 };

	if (n > 0)
		*sound = write_out(e, &iov, 1, (size_t)n);
	return n;
}

static ssize_t copy_framed(struct end *e, bool *sound)
{
	struct iovec iov[FRAMES], all = { loop.buf, 0 };
	ssize_t n;
	size_t left;
	int i;

	for (i = 0; i < FRAMES; i++)
		iov[i] = (struct iovec){ loop.buf + i * (PAYLOAD + HEADER) + HEADER, PAYLOAD };
	n = readv(e->fd, iov, FRAMES);
	for (left = n > 0 ? (size_t)n : 0; left; ) {
		uint64_t part = left < PAYLOAD ? left : PAYLOAD;

		memcpy(loop.buf + all.iov_len, &part, HEADER);
		all.iov_len += HEADER + part;
		left -= part;
	}
	if (all.iov_len)
		*sound = write_out(e, &all, 1, all.iov_len);
	return n;
}

/* The length that a header tells, or 0 where it is none. */
static size_t length_of(const uint8_t *head)
{
	uint64_t len;

	memcpy(&len, head, HEADER);
	return len <= PAYLOAD ? (size_t)len : 0;
}

/* Many small payloads: they move together, so that one call still takes them. */
static int join(struct iovec *iov, int n)
{
	size_t len = 0;
	int i;

	for (i = 0; i < n; i++) {
		memmove(loop.buf + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	iov[0] = (struct iovec){ loop.buf, len };
	return 1;
}

/* The payloads among @n bytes in the buffer: how many parts, or -1 for what is no frame. */
static int take_payloads(struct end *e, size_t n, struct iovec *iov)
{
	uint8_t *at = loop.buf, *end = loop.buf + n;
	int count = 0;

	while (at < end) {
		size_t part = (size_t)(end - at);

		if (e->payload_left) {
			if (part > e->payload_left)
				part = e->payload_left;
			if (count == PARTS)
				count = join(iov, count);
			iov[count++] = (struct iovec){ at, part };
			e->payload_left -= part;
		} else {
			if (part > HEADER - e->head_len)
				part = HEADER - e->head_len;
			memcpy(e->head + e->head_len, at, part);
			e->head_len += part;
			if (e->head_len == HEADER) {
				e->head_len = 0;
				e->payload_left = length_of(e->head);
				if (!e->payload_left)
					return -1;
			}
		}
		at += part;
	}
	return count;
}

static ssize_t copy_unframed(struct end *e, bool *sound)
{
	struct iovec iov[PARTS];
	ssize_t n = recv(e->fd, loop.buf, CHUNK, 0);
	int count = n > 0 ? take_payloads(e, (size_t)n, iov) : 0;
	size_t len = 0;
	int i;

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	if (count)
		*sound = count > 0 && (!len || write_out(e, iov, count, len));
	return n;
}

/* --- a connection --- */

/* What it brings goes to the other end, until that one is full or there is no more for now. */
static bool pump(struct end *e)
{
	static ssize_t (*const copy[])(struct end *e, bool *sound) = {
		[PLAIN] = copy_plain, [FRAME] = copy_framed, [UNFRAME] = copy_unframed,
	};

	if (!write_rest(e))
		return false;
	while (!e->ended && e->at == e->len) {
		bool sound = true;
		ssize_t n = copy[e->mode](e, &sound);

		if (n < 0)
			return errno == EAGAIN;
		if (!sound)
			return false;
		if (!n) {
			e->ended = true;
			shutdown(other(e)->fd, SHUT_WR);
		}
	}
	return true;
}

static bool is_over(const struct link *l)
{
	return l->end[0].ended && l->end[1].ended;
}

/* Room at one end lets the other one go on, so both are tried. */
static void look(struct end *e)
{
	if (e->link->gone)
		return;
	if (!pump(e) || !pump(other(e)) || is_over(e->link))
		drop(e->link);
}

static bool watch(struct end *e)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				  .data.ptr = e };

	return !epoll_ctl(loop.epfd, EPOLL_CTL_ADD, e->fd, &ev);
}

/* Options that the listening socket has are those of the one that came. */
static int dial(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			loop.protocol_out);

	if (fd < 0)
		fail("socket");
	set(fd, IPPROTO_TCP, TCP_NODELAY);
	if (connect(fd, (struct sockaddr *)&loop.to, sizeof(loop.to)) && errno != EINPROGRESS)
		fail("connect");
	return fd;
}

static void take(int fd)
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		fail("memory");
	l->end[0] = (struct end){ .fd = fd, .link = l, .mode = loop.in };
	l->end[1] = (struct end){ .fd = dial(), .link = l, .mode = loop.out };
	if (!watch(&l->end[0]) || !watch(&l->end[1]))
		fail("epoll_ctl");
}

static void accept_all(void)
{
	int fd;

	while ((fd = accept4(loop.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		take(fd);
	if (errno != EAGAIN && errno != ECONNABORTED)
		fail("accept");
}

/* --- beginning --- */

static struct sockaddr_in here(const char *port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)atoi(port)),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void begin(const char *port)
{
	struct sockaddr_in at = here(port);
	struct epoll_event ev = { .events = EPOLLIN };

	loop.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			       loop.protocol_in);
	if (loop.listener < 0)
		fail("socket");
	set(loop.listener, SOL_SOCKET, SO_REUSEADDR);
	set(loop.listener, IPPROTO_TCP, TCP_NODELAY);
	loop.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (bind(loop.listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(loop.listener, BACKLOG) ||
	    epoll_ctl(loop.epfd, EPOLL_CTL_ADD, loop.listener, &ev))
		fail("listen");
}

static void set_modes(const char *name)
{
	static const struct {
		const char *name;
		enum mode in, out;
		int protocol_in, protocol_out;
	} modes[] = {
		{ .name = "plain" },
		{ .name = "frame", .in = FRAME, .out = UNFRAME },
		{ .name = "unframe", .in = UNFRAME, .out = FRAME },
		{ .name = "mptcp-out", .protocol_out = IPPROTO_MPTCP },
		{ .name = "mptcp-in", .protocol_in = IPPROTO_MPTCP },
	};
	size_t i = 0;

	while (i < MODES && strcmp(name, modes[i].name))
		i++;
	if (i == MODES) {
		fprintf(stderr, "copyloop: '%s' is none of " MODE_NAMES "\n", name);
		exit(2);
	}
	loop.in = modes[i].in;
	loop.out = modes[i].out;
	loop.protocol_in = modes[i].protocol_in;
	loop.protocol_out = modes[i].protocol_out;
}

int main(int argc, char **argv)
{
	struct epoll_event batch[BATCH];

	if (argc != 4) {
		fprintf(stderr, "usage: copyloop LISTEN-PORT TO-PORT " MODE_NAMES "\n");
		return 2;
	}
	set_modes(argv[3]);
	loop.to = here(argv[2]);
	begin(argv[1]);
	for (;;) {
		int n = epoll_wait(loop.epfd, batch, BATCH, -1), i;

		if (n < 0 && errno != EINTR)
			fail("epoll_wait");
		for (i = 0; i < n; i++) {
			if (batch[i].data.ptr)
				look(batch[i].data.ptr);
			else
				accept_all();
		}
		free_dead();
	}
}
