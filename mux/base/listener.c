/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "addr.h"
#include "log.h"
#include "incidents.h"
#include "seldom.h"
#include "sock.h"

struct listener {
	struct loop *loop;
	struct log *log;
	struct watch watch;
	struct timer backoff;	/* set while descriptors or memory are short */
	int64_t said_at;	/* when the shortage was logged; 0 never */
	struct incidents *incidents;	/* where it counts, or NULL, */
	unsigned int kind;	/* and as what */
	bool paused;		/* by the owner */
	void (*prepare)(int fd);	/* for each that is accepted, or NULL */
	struct sockaddr_storage addr;
	accepted_fn accepted;
	void *owner;
};

bool listener_is_short(const struct listener *l)
{
	return l->backoff.slot != 0;
}

static bool accepts(const struct listener *l)
{
	return !l->paused && !listener_is_short(l);
}

static void update_watch(struct listener *l)
{
	loop_want(l->loop, &l->watch, accepts(l) ? EPOLLIN : 0);
}

static void backoff_expired(struct timer *t)
{
	update_watch(container_of(t, struct listener, backoff));
}

void listener_pause(struct listener *l, bool paused)
{
	l->paused = paused;
	update_watch(l);
}

void listener_prepares(struct listener *l, void (*prepare)(int fd))
{
	l->prepare = prepare;
}

void listener_counts_in(struct listener *l, struct incidents *incidents,
			unsigned int kind)
{
	l->incidents = incidents;
	l->kind = kind;
}

static bool is_to_be_said(struct listener *l, const char *where)
{
	if (l->incidents)
		return incidents_note(l->incidents, l->kind, where);
	return seldom(&l->said_at, l->loop);
}

/* Without memory for the timer it goes on at once, and tries again. */
static void back_off(struct listener *l, int err)
{
	char text[ADDR_TEXT];

	loop_timer_in(l->loop, &l->backoff, LISTENER_BACKOFF_MS * NS_PER_MS);
	update_watch(l);
	addr_text(&l->addr, text);
	if (!is_to_be_said(l, text))
		return;
	log_error(l->log, "cannot accept connections on %s: %s; they wait, and "
		  "it is tried again every %d ms. More descriptors: ulimit -n "
		  "(now %lu)", text, strerror(err),
		  LISTENER_BACKOFF_MS, sock_limit());
}

/* Returns whether to go on with the batch. */
static bool accept_one(struct listener *l)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);
	int fd = accept4(l->watch.fd, (struct sockaddr *)&peer, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		if (l->prepare)
			l->prepare(fd);
		l->accepted(l, fd, &peer);
		return true;
	}
	if (errno == EAGAIN)
		return false;
	/* A connection that failed while it waited concerns nobody. */
	if (!sock_is_passing(errno))
		back_off(l, errno);
	return true;
}

void listener_look(struct listener *l)
{
	int64_t until = loop_clock() + LISTENER_TURN_US * NS_PER_US;
	int left = LISTENER_BATCH;

	while (left-- && accepts(l) && accept_one(l) && loop_clock() < until)
		;
}

static void connections_wait(struct watch *w, uint32_t events)
{
	(void)events;
	listener_look(container_of(w, struct listener, watch));
}

/* @fd listens, and is closed when this fails. */
static int watch_socket(struct listener *l, int fd)
{
	socklen_t len = sizeof(l->addr);
	int err;

	getsockname(fd, (struct sockaddr *)&l->addr, &len);
	err = loop_watch(l->loop, &l->watch, fd, EPOLLIN);
	if (err)
		close(fd);
	return err;
}

struct listener *listener_adopt(struct loop *loop, struct log *log, int fd,
				accepted_fn accepted, void *owner)
{
	struct listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l) {
		close(fd);
		errno = ENOMEM;
		return NULL;
	}
	l->loop = loop;
	l->log = log;
	l->watch.ready = connections_wait;
	l->backoff.fire = backoff_expired;
	l->accepted = accepted;
	l->owner = owner;
	err = watch_socket(l, fd);
	if (!err)
		return l;
	free(l);
	errno = -err;
	return NULL;
}

struct listener *listener_new(struct loop *loop, struct log *log, int fd,
			      const struct sockaddr_storage *addr,
			      socklen_t len, accepted_fn accepted, void *owner)
{
	if (fd >= 0)
		fd = sock_listen(fd, addr, len);
	if (fd >= 0)
		return listener_adopt(loop, log, fd, accepted, owner);
	errno = -fd;
	return NULL;
}

void listener_free(struct listener *l)
{
	int fd;

	if (!l)
		return;
	loop_timer_stop(l->loop, &l->backoff);
	fd = l->watch.fd;
	loop_unwatch(l->loop, &l->watch);	/* who handed it over may have it, too */
	close(fd);
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
