/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/log.h"
#include "../mux/base/seldom.h"
#include "../mux/base/sock.h"

struct listener {
	struct loop *loop;
	struct log *log;
	struct watch watch;
	struct timer rest;
	int64_t said_at;	/* that descriptors are short; 0 never */
	bool held;
	struct sockaddr_storage addr;
	accepted_fn accepted;
	void *owner;
};

static bool resting(const struct listener *l)
{
	return l->held || l->rest.slot;
}

static void want(struct listener *l)
{
	loop_want(l->loop, &l->watch, resting(l) ? 0 : EPOLLIN);
}

static void rested(struct timer *t)
{
	want(container_of(t, struct listener, rest));
}

void listener_hold(struct listener *l, bool held)
{
	l->held = held;
	want(l);
}

static void say_short(struct listener *l, int err)
{
	if (!seldom(&l->said_at, l->loop))
		return;
	if (err == EMFILE)
		log_error(l->log, "no descriptors left for connections, so "
			  "they wait: raise the limit (ulimit -n %ld) or "
			  "lower --max-conns", sysconf(_SC_OPEN_MAX) * 2);
	else
		log_error(l->log, "connections cannot be accepted now, so "
			  "they wait: %s", strerror(err));
}

static void come_in(struct watch *w, uint32_t events)
{
	struct listener *l = container_of(w, struct listener, watch);
	int left;

	(void)events;
	for (left = ACCEPT_BATCH; left && !resting(l); left--) {
		int fd = accept4(l->watch.fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			/* If we die now, nobody takes it for an orderly end. */
			sock_arm_reset(fd);
			l->accepted(l, fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (!sock_is_passing(errno)) {
			say_short(l, errno);
			loop_timer_in(l->loop, &l->rest,
				      ACCEPT_REST_MS * NS_PER_MS);
			want(l);
		}
	}
}

struct listener *listener_new(struct loop *loop, struct log *log,
			      const struct sockaddr_storage *addr,
			      socklen_t len, accepted_fn accepted, void *owner)
{
	struct listener *l = calloc(1, sizeof(*l));
	int fd, err;

	if (!l)
		return NULL;
	l->loop = loop;
	l->log = log;
	l->watch.ready = come_in;
	l->rest.fire = rested;
	l->accepted = accepted;
	l->owner = owner;
	fd = err = sock_listen(addr, len);
	if (fd >= 0) {
		len = sizeof(l->addr);
		getsockname(fd, (struct sockaddr *)&l->addr, &len);
		err = loop_watch(loop, &l->watch, fd, EPOLLIN);
		if (!err)
			return l;
		close(fd);
	}
	free(l);
	errno = -err;
	return NULL;
}

void listener_free(struct listener *l)
{
	if (!l)
		return;
	loop_timer_stop(l->loop, &l->rest);
	loop_close(l->loop, &l->watch);
	free(l);
}

void *listener_owner(const struct listener *l)
{
	return l->owner;
}

const struct sockaddr_storage *listener_addr(const struct listener *l)
{
	return &l->addr;
}
