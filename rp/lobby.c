/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lobby.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/log.h"
#include "../mux/base/sock.h"
#include "../mux/settings/limits.h"
#include "access.h"

struct door {
	struct lobby *lobby;
	enum transport kind;
	struct list member;
	struct watch watch;
};

struct group {
	struct lobby *lobby;
	struct list member;
	struct sockaddr_storage peer;
	struct list waiters;
	unsigned int n;
	struct timer patience;
};

struct waiter {
	struct group *group;
	struct list member;
	struct watch watch;
};

/* --- groups and who waits in them --- */

static struct group *group_find(struct lobby *l,
				const struct sockaddr_storage *peer)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &l->groups) {
		struct group *g = list_entry(pos, struct group, member);

		if (addr_same_host(&g->peer, peer))
			return g;
	}
	return NULL;
}

static void group_free(struct group *g)
{
	loop_timer_stop(g->lobby->loop, &g->patience);
	list_del(&g->member);
	free(g);
}

/* The pipe is out of the lobby; its descriptor stays open. */
static int waiter_leave(struct waiter *w)
{
	struct group *g = w->group;
	int fd = w->watch.fd;

	loop_unwatch(g->lobby->loop, &w->watch);
	list_del(&w->member);
	g->n--;
	g->lobby->waiting--;
	free(w);
	return fd;
}

static void group_dismiss(struct group *g)
{
	while (g->n)
		close(waiter_leave(list_first(&g->waiters, struct waiter,
					      member)));
	group_free(g);
}

static void patience_over(struct timer *t)
{
	struct group *g = container_of(t, struct group, patience);
	struct lobby *l = g->lobby;
	char host[ADDR_TEXT];

	log_warn(l->log, "%u of %u pipes came from %s within %g s: closed",
		 g->n, l->pipes, addr_host(&g->peer, host),
		 (double)l->patience / (double)NS_PER_SEC);
	group_dismiss(g);
}

static struct group *group_new(struct lobby *l,
			       const struct sockaddr_storage *peer)
{
	struct group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->lobby = l;
	g->peer = *peer;
	g->patience.fire = patience_over;
	list_init(&g->member);
	list_init(&g->waiters);
	if (loop_timer_in(l->loop, &g->patience, l->patience)) {
		free(g);
		return NULL;
	}
	list_add_tail(&l->groups, &g->member);
	return g;
}

/* A pipe in waiting is watched for its end alone: it hung up, or failed. */
static void waiter_ended(struct watch *watch, uint32_t events)
{
	struct waiter *w = container_of(watch, struct waiter, watch);
	struct group *g = w->group;
	struct lobby *l = g->lobby;
	char host[ADDR_TEXT];

	(void)events;
	close(waiter_leave(w));
	log_debug(l->log, "a pipe from %s was closed while it waited: %u of %u "
		  "are left", addr_host(&g->peer, host), g->n, l->pipes);
	if (!g->n)
		group_free(g);
}

static int waiter_add(struct group *g, int fd)
{
	struct waiter *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->group = g;
	w->watch.ready = waiter_ended;
	err = loop_watch(g->lobby->loop, &w->watch, fd, EPOLLRDHUP);
	if (err) {
		free(w);
		return err;
	}
	list_add_tail(&g->waiters, &w->member);
	g->n++;
	g->lobby->waiting++;
	return 0;
}

/* In the order in which they came: so pipes are numbered. */
static void group_complete(struct group *g)
{
	struct lobby *l = g->lobby;
	struct sockaddr_storage peer = g->peer;
	int fds[PIPES_MAX];
	unsigned int n = 0;

	while (g->n)
		fds[n++] = waiter_leave(list_first(&g->waiters, struct waiter,
						   member));
	group_free(g);
	l->ops->complete(l, &peer, fds, n);
}

/* --- doors --- */

/* Why a new pipe from @peer cannot stay, or NULL. */
static const char *objection(struct lobby *l,
			     const struct sockaddr_storage *peer)
{
	if (!access_admits(l->access, peer))
		return "no --allow covers it";
	if (!l->ops->room(l))
		return "there are as many sessions as --max-sessions allows";
	if (l->waiting >= LOBBY_WAITING_MAX)
		return "too many pipes are waiting for the rest of theirs";
	return NULL;
}

static void refuse(struct lobby *l, const struct sockaddr_storage *peer, int fd,
		   const char *why)
{
	char text[ADDR_TEXT];

	log_warn(l->log, "a pipe from %s was reset: %s", addr_text(peer, text),
		 why);
	sock_reset(fd);
}

static void admit(struct lobby *l, const struct sockaddr_storage *peer, int fd)
{
	const char *why = objection(l, peer);
	struct group *g;

	if (why) {
		refuse(l, peer, fd, why);
		return;
	}
	g = group_find(l, peer);
	if (!g)
		g = group_new(l, peer);
	if (!g || waiter_add(g, fd)) {
		refuse(l, peer, fd, "memory is short");
		if (g && !g->n)
			group_free(g);
		return;
	}
	if (g->n == l->pipes)
		group_complete(g);
}

static void doors_want(struct lobby *l, uint32_t events)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &l->doors)
		loop_want(l->loop, &list_entry(pos, struct door, member)->watch,
			  events);
}

static void rest_over(struct timer *t)
{
	doors_want(container_of(t, struct lobby, rest), EPOLLIN);
}

/* Who waits outside stays in the kernel's queue. Said once, not every time. */
static void rest(struct lobby *l, int err)
{
	if (!l->starved)
		log_error(l->log, "cannot accept pipes: %s; trying again every "
			  "%d ms. More descriptors: ulimit -n (now %lu)",
			  strerror(err), LOBBY_REST_MS, sock_limit());
	l->starved = true;
	doors_want(l, 0);
	if (loop_timer_in(l->loop, &l->rest, LOBBY_REST_MS * NS_PER_MS))
		doors_want(l, EPOLLIN);	/* no memory for a timer: spin */
}

/* Errors of the one pipe, gone before it was accepted, are nobody's concern. */
static void door_ready(struct watch *watch, uint32_t events)
{
	struct door *door = container_of(watch, struct door, watch);
	struct lobby *l = door->lobby;
	struct sockaddr_storage peer;
	int i;

	(void)events;
	for (i = 0; i < LOBBY_ACCEPTS; i++) {
		socklen_t len = sizeof(peer);
		int fd;

		memset(&peer, 0, sizeof(peer));
		fd = accept4(watch->fd, (struct sockaddr *)&peer, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			l->starved = false;
			admit(l, &peer, fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (!sock_is_passing(errno)) {
			rest(l, errno);
			return;
		}
	}
}

/* --- the lobby as a whole --- */

void lobby_init(struct lobby *l, const struct lobby_ops *ops, struct loop *loop,
		struct log *log, const struct access *access,
		unsigned int pipes)
{
	memset(l, 0, sizeof(*l));
	l->ops = ops;
	l->loop = loop;
	l->log = log;
	l->access = access;
	l->pipes = pipes;
	l->patience = LOBBY_PATIENCE_S * NS_PER_SEC;
	l->rest.fire = rest_over;
	list_init(&l->doors);
	list_init(&l->groups);
}

int lobby_open(struct lobby *l, enum transport kind,
	       const struct sockaddr_storage *addr, socklen_t len)
{
	struct door *door = calloc(1, sizeof(*door));
	int fd, err;

	if (!door)
		return -ENOMEM;
	fd = transport_socket(kind, addr->ss_family);
	if (fd >= 0)
		fd = sock_listen_on(fd, addr, len);
	if (fd < 0) {
		free(door);
		return fd;
	}
	door->lobby = l;
	door->kind = kind;
	door->watch.ready = door_ready;
	err = loop_watch(l->loop, &door->watch, fd, EPOLLIN);
	if (err) {
		close(fd);
		free(door);
		return err;
	}
	list_add_tail(&l->doors, &door->member);
	return 0;
}

bool lobby_address(const struct lobby *l, unsigned int i,
		   struct sockaddr_storage *addr, enum transport *kind)
{
	socklen_t len = sizeof(*addr);
	struct list *pos, *tmp;

	list_each(pos, tmp, &l->doors) {
		struct door *door = list_entry(pos, struct door, member);

		*kind = door->kind;
		if (!i--)
			return !getsockname(door->watch.fd,
					    (struct sockaddr *)addr, &len);
	}
	return false;
}

static void door_close(struct door *door)
{
	loop_close(door->lobby->loop, &door->watch);
	list_del(&door->member);
	free(door);
}

void lobby_close(struct lobby *l)
{
	loop_timer_stop(l->loop, &l->rest);
	while (!list_empty(&l->doors))
		door_close(list_first(&l->doors, struct door, member));
	while (!list_empty(&l->groups))
		group_dismiss(list_first(&l->groups, struct group, member));
}

void lobby_print(const struct lobby *l, FILE *out)
{
	struct list *pos, *tmp;
	char host[ADDR_TEXT];

	fprintf(out, "waiting for the rest of a session: %u pipes%s\n",
		l->waiting, l->rest.slot ? " (no descriptors for more)" : "");
	list_each(pos, tmp, &l->groups) {
		const struct group *g = list_entry(pos, struct group, member);
		int64_t left = g->patience.at - loop_clock();

		fprintf(out, "  %u of %u from %s, %.1f s left\n", g->n,
			l->pipes, addr_host(&g->peer, host),
			(double)left / (double)NS_PER_SEC);
	}
}
