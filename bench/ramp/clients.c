// SPDX-License-Identifier: MIT
/*
 * The clients' sockets. One read for each event: what is left is told again. Where TLS is spoken,
 * OpenSSL reads as much as there is (read ahead), and all of that is taken.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ramp.h"

#define SERVER_NAME "resolver.test"	/* on its certificate */

enum {
	EVENTS = 64,
	READ_SIZE = 1 << 16,
};

struct client {
	int fd;
	SSL *tls;
	uint8_t have, rest;	/* bytes in the following */
	uint8_t in[WIRE_PREFIX + WIRE_ANSWER];	/* the beginning of an answer */
	uint8_t out[WIRE_QUERY];	/* the end of a query */
};

/* What OpenSSL's calls return, as recv() and send() do. */
static ssize_t tls_result(SSL *tls, int n)
{
	int err = n > 0 ? SSL_ERROR_NONE : SSL_get_error(tls, n);

	if (err == SSL_ERROR_NONE)
		return n;
	if (err == SSL_ERROR_WANT_READ || err == SSL_ERROR_WANT_WRITE)
		errno = EAGAIN;
	else if (err == SSL_ERROR_ZERO_RETURN)
		return 0;
	else if (err != SSL_ERROR_SYSCALL || !errno)
		errno = EPROTO;
	return -1;
}

static ssize_t put(struct client *cl, const uint8_t *data, size_t len)
{
	if (cl->tls)
		return tls_result(cl->tls, SSL_write(cl->tls, data, (int)len));
	return send(cl->fd, data, len, MSG_NOSIGNAL);
}

static ssize_t get(struct client *cl, uint8_t *buf, size_t len)
{
	if (cl->tls)
		return tls_result(cl->tls, SSL_read(cl->tls, buf, (int)len));
	return recv(cl->fd, buf, len, 0);
}

static int watch(struct clients *c, uint32_t which, int op)
{
	struct client *cl = &c->all[which];
	struct epoll_event ev = {
		.events = EPOLLIN | (cl->rest ? EPOLLOUT : 0),
		.data.u32 = which,
	};

	return epoll_ctl(c->epfd, op, cl->fd, &ev) < 0 ? -errno : 0;
}

static int set_tls(struct clients *c, const char *authority)
{
	long mode = SSL_MODE_ENABLE_PARTIAL_WRITE |
		    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;

	c->tls = SSL_CTX_new(TLS_client_method());
	if (!c->tls)
		return -ENOMEM;
	SSL_CTX_set_mode(c->tls, mode);
	SSL_CTX_set_read_ahead(c->tls, 1);
	SSL_CTX_set_verify(c->tls, SSL_VERIFY_PEER, NULL);
	return SSL_CTX_load_verify_locations(c->tls, authority, NULL) == 1 ?
		0 : -ENOENT;
}

static int shake_hands(struct clients *c, struct client *cl)
{
	cl->tls = SSL_new(c->tls);
	if (!cl->tls || SSL_set1_host(cl->tls, SERVER_NAME) != 1 ||
	    SSL_set_fd(cl->tls, cl->fd) != 1)
		return -ENOMEM;
	return SSL_connect(cl->tls) == 1 ? 0 : -EPROTO;
}

static int open_client(struct clients *c, uint32_t which, uint16_t port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct client *cl = &c->all[which];
	int type = c->kind == KIND_UDP ? SOCK_DGRAM : SOCK_STREAM;
	int one = 1, err = 0;

	cl->fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (cl->fd < 0)
		return -errno;
	if (c->kind != KIND_UDP)
		setsockopt(cl->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(cl->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	if (c->kind == KIND_TLS)
		err = shake_hands(c, cl);
	if (!err && fcntl(cl->fd, F_SETFL, O_NONBLOCK) < 0)
		err = -errno;
	return err ? err : watch(c, which, EPOLL_CTL_ADD);
}

int clients_open(struct clients *c, uint16_t port, uint16_t ports,
		 const char *authority, uint32_t *which)
{
	int err = 0;

	*which = 0;
	c->all = calloc(c->count, sizeof(*c->all));
	c->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (!c->all || c->epfd < 0)
		return -ENOMEM;
	if (c->kind == KIND_TLS)
		err = set_tls(c, authority);
	while (!err && *which < c->count) {
		err = open_client(c, *which, (uint16_t)(port + *which % ports));
		*which += !err;
	}
	return err;
}

void clients_close(struct clients *c)
{
	uint32_t i;

	for (i = 0; i < c->count; i++) {
		SSL_free(c->all[i].tls);
		close(c->all[i].fd);
	}
	SSL_CTX_free(c->tls);
	close(c->epfd);
	free(c->all);
}

/* What an earlier query left over goes ahead of all. 0 or -errno. */
static int flush(struct clients *c, uint32_t which)
{
	struct client *cl = &c->all[which];
	ssize_t n = put(cl, cl->out, cl->rest);

	if (n < 0)
		return -errno;
	cl->rest -= (uint8_t)n;
	memmove(cl->out, cl->out + n, cl->rest);
	return cl->rest ? -EAGAIN : watch(c, which, EPOLL_CTL_MOD);
}

int clients_ask(struct clients *c, uint32_t which, const uint8_t *query,
		size_t len)
{
	struct client *cl = &c->all[which];
	int err = cl->rest ? flush(c, which) : 0;
	ssize_t n;

	if (err)
		return err;
	if (c->kind == KIND_UDP) {
		n = put(cl, query + WIRE_PREFIX, len - WIRE_PREFIX);
		return n < 0 ? -errno : 0;
	}
	n = put(cl, query, len);
	if (n < 0 && (errno != EAGAIN || !cl->tls))
		return -errno;
	n = n < 0 ? 0 : n;	/* OpenSSL has it, and wants it to be said again */
	if ((size_t)n == len)
		return 0;
	cl->rest = (uint8_t)(len - (size_t)n);
	memcpy(cl->out, query + n, cl->rest);
	return watch(c, which, EPOLL_CTL_MOD);
}

/* Hands on the whole answers of @len bytes, and keeps what is behind them. */
static int take(struct clients *c, uint32_t which, const uint8_t *buf,
		size_t len, heard_fn heard, void *arg)
{
	struct client *cl = &c->all[which];
	size_t at, size;

	for (at = 0; len - at >= WIRE_PREFIX; at += WIRE_PREFIX + size) {
		size = wire_length(buf + at);
		if (size > WIRE_ANSWER)
			return -EMSGSIZE;
		if (len - at < WIRE_PREFIX + size)
			break;
		heard(arg, which, buf + at + WIRE_PREFIX, size);
	}
	cl->have = (uint8_t)(len - at);
	memcpy(cl->in, buf + at, cl->have);
	return 0;
}

static int hear(struct clients *c, uint32_t which, heard_fn heard, void *arg)
{
	static uint8_t buf[READ_SIZE];
	struct client *cl = &c->all[which];
	ssize_t n;
	int err;

	do {
		memcpy(buf, cl->in, cl->have);
		n = get(cl, buf + cl->have, sizeof(buf) - cl->have);
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0 && c->kind != KIND_UDP)
			return -EPIPE;
		if (c->kind == KIND_UDP) {
			heard(arg, which, buf, (size_t)n);
			return 0;
		}
		err = take(c, which, buf, cl->have + (size_t)n, heard, arg);
	} while (!err && cl->tls && SSL_has_pending(cl->tls));
	return err;
}

int clients_hear(struct clients *c, int64_t until, heard_fn heard, void *arg)
{
	struct epoll_event events[EVENTS];
	int64_t left = until - clock_ns();
	struct timespec wait;
	int i, n, err = 0;

	left = left < 0 ? 0 : left;
	wait = (struct timespec){ left / 1000000000, left % 1000000000 };
	n = epoll_pwait2(c->epfd, events, EVENTS, &wait, NULL);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (i = 0; i < n && !err; i++) {
		if (events[i].events & EPOLLOUT)
			err = flush(c, events[i].data.u32);
		if (err == -EAGAIN)
			err = 0;
		if (!err && events[i].events & ~(uint32_t)EPOLLOUT)
			err = hear(c, events[i].data.u32, heard, arg);
	}
	return err;
}
