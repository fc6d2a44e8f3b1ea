/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lobby.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/base/sock.h"
#include "../mux/settings/limits.h"
#include "../mux/settings/incident.h"
#include "access.h"

struct group {
	struct lobby *lobby;
	struct list member;
	struct sockaddr_storage peer;
	struct list waiters;
	unsigned int n;
	struct timer deadline;
	struct timer settle;	/* set while it has enough pipes */
};

struct waiter {
	struct group *group;
	struct list member;
	struct place place;
	struct watch watch;
	int64_t came_at;
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
	loop_timer_stop(g->lobby->loop, &g->deadline);
	loop_timer_stop(g->lobby->loop, &g->settle);
	list_del(&g->member);
	free(g);
}

/* The pipe leaves the lobby. Its descriptor stays open and is returned. */
static int waiter_leave(struct waiter *w)
{
	struct group *g = w->group;
	int fd = w->watch.fd;

	loop_unwatch(g->lobby->loop, &w->watch);
	list_del(&w->member);
	g->n--;
	places_leave(&g->lobby->waiting, &w->place);
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

static void group_expired(struct timer *t)
{
	struct group *g = container_of(t, struct group, deadline);
	struct lobby *l = g->lobby;
	char host[ADDR_TEXT];

	if (g->settle.slot) {
		loop_timer_in(l->loop, t, LOBBY_SETTLE_MAX_MS * NS_PER_MS);
		return;
	}
	if (incidents_note_peer(l->incidents, INCIDENT_GROUP, &g->peer))
		log_warn(l->log, "%u of %u pipes came from %s within %g s: closed; if no more were dialled, lp was started for another number of pipes",
			 g->n, l->pipes, addr_host(&g->peer, host),
			 (double)l->patience / (double)NS_PER_SEC);
	group_dismiss(g);
}

/* The pipes are handed over in the order in which they came, as pipe 0, 1, ... */
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

/* --- is it one burst of dialling? --- */

static struct waiter *waiter_at(const struct list *pos)
{
	return list_entry(pos, struct waiter, member);
}

/* Between two pipes of it, that came one after the other. */
static int64_t longest_gap(const struct group *g)
{
	const struct list *pos = g->waiters.next;
	int64_t longest = 0;

	for (; pos->next != &g->waiters; pos = pos->next) {
		int64_t gap = waiter_at(pos->next)->came_at -
			      waiter_at(pos)->came_at;

		if (gap > longest)
			longest = gap;
	}
	return longest;
}

static int64_t settle_time(const struct group *g)
{
	int64_t ns = 4 * longest_gap(g);

	if (ns < LOBBY_SETTLE_MIN_MS * NS_PER_MS)
		return LOBBY_SETTLE_MIN_MS * NS_PER_MS;
	if (ns > LOBBY_SETTLE_MAX_MS * NS_PER_MS)
		return LOBBY_SETTLE_MAX_MS * NS_PER_MS;
	return ns;
}

static void close_first(struct group *g, unsigned int n)
{
	while (n--)
		close(waiter_leave(waiter_at(g->waiters.next)));
}

/* Did the last pipes come in one burst, apart from the @before first ones? */
static bool last_came_apart(const struct group *g, unsigned int before)
{
	const struct list *first = g->waiters.next;
	int64_t apart, span;

	while (before--)
		first = first->next;
	apart = waiter_at(first)->came_at - waiter_at(first->prev)->came_at;
	span = waiter_at(g->waiters.prev)->came_at - waiter_at(first)->came_at;
	return apart > LOBBY_SETTLE_MIN_MS * NS_PER_MS && apart > 4 * span;
}

static void reset_group(struct group *g)
{
	struct lobby *l = g->lobby;
	char host[ADDR_TEXT];

	if (incidents_note_peer(l->incidents, INCIDENT_GROUP, &g->peer))
		log_warn(l->log, "%u pipes came from %s at once, and rp was started for "
			 "%u: all were reset. Either lp was started for another number "
			 "of pipes, or there are several behind this address",
			 g->n, addr_host(&g->peer, host), l->pipes);
	while (g->n)
		sock_reset(waiter_leave(waiter_at(g->waiters.next)));
	group_free(g);
}

static void group_settled(struct timer *t)
{
	struct group *g = container_of(t, struct group, settle);
	struct lobby *l = g->lobby;
	unsigned int surplus = g->n - l->pipes;
	char host[ADDR_TEXT];

	if (surplus && !last_came_apart(g, surplus)) {
		reset_group(g);
		return;
	}
	if (surplus) {
		if (incidents_note_peer(l->incidents, INCIDENT_GROUP, &g->peer))
			log_warn(l->log, "%u pipe%s from %s, left over when %u other%s came at once, %s closed",
				 surplus, plural(surplus),
				 addr_host(&g->peer, host), l->pipes,
				 plural(l->pipes), surplus == 1 ? "was" : "were");
		close_first(g, surplus);
	}
	group_complete(g);
}

static struct group *group_new(struct lobby *l,
			       const struct sockaddr_storage *peer)
{
	struct group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->lobby = l;
	g->peer = *peer;
	g->deadline.fire = group_expired;
	g->settle.fire = group_settled;
	list_init(&g->member);
	list_init(&g->waiters);
	if (loop_timer_in(l->loop, &g->deadline, l->patience)) {
		free(g);
		return NULL;
	}
	list_add_tail(&l->groups, &g->member);
	return g;
}

/* Nothing is read from a waiting pipe: what woke us is that it ended. */
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
	if (g->n < l->pipes)
		loop_timer_stop(l->loop, &g->settle);
	if (!g->n)
		group_free(g);
}

static int waiter_add(struct group *g, int fd)
{
	struct waiter *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	err = places_take(&g->lobby->waiting, &w->place, &g->peer);
	if (err)
		goto free_waiter;
	w->group = g;
	w->came_at = loop_clock();
	w->watch.ready = waiter_ended;
	err = loop_watch(g->lobby->loop, &w->watch, fd, EPOLLRDHUP);
	if (err)
		goto leave;
	list_add_tail(&g->waiters, &w->member);
	g->n++;
	return 0;

leave:
	places_leave(&g->lobby->waiting, &w->place);
free_waiter:
	free(w);
	return err;
}

/* --- who comes in --- */

/* Why a new pipe from @peer cannot stay, or NULL. */
static const char *objection(struct lobby *l,
			     const struct sockaddr_storage *peer,
			     enum incident *what)
{
	*what = INCIDENT_ALLOW;
	if (!access_admits(l->access, peer))
		return "no --allow covers it";
	return l->ops->objection(l, peer, what);
}

static void reset_pipe(struct lobby *l, const struct sockaddr_storage *peer,
		       int fd, enum incident what, const char *why)
{
	char text[ADDR_TEXT];

	if (incidents_note_peer(l->incidents, what, peer))
		log_warn(l->log, "a pipe from %s was reset: %s",
			 addr_text(peer, text), why);
	sock_reset(fd);
}

static struct group *group_of(const struct place *p)
{
	return container_of(p, struct waiter, place)->group;
}

static void close_group(struct group *g, unsigned int waiting)
{
	struct lobby *l = g->lobby;
	char host[ADDR_TEXT];

	if (incidents_note_peer(l->incidents, INCIDENT_WAITING, &g->peer))
		log_warn(l->log, "%u of %u pipes from %s %s closed: %u pipes "
			 "wait for the others of their group", g->n, l->pipes,
			 addr_host(&g->peer, host), g->n == 1 ? "was" : "were",
			 waiting);
	group_dismiss(g);
}

/* Where all of them are of one address, that address is told in another way. */
static void make_place(struct lobby *l, const struct sockaddr_storage *peer)
{
	unsigned int n = places_of(&l->waiting, peer);

	if (n >= l->each) {
		struct group *oldest = group_of(places_oldest_of(&l->waiting,
								 peer, NULL));

		if (oldest->n < n)
			close_group(oldest, n);
	}
	if (l->waiting.n >= l->max)
		close_group(group_of(places_victim(&l->waiting, NULL)),
			    l->waiting.n);
}

static void pipe_accepted(struct listener *listener, int fd,
			  const struct sockaddr_storage *peer)
{
	struct lobby *l = listener_owner(listener);
	enum incident what;
	const char *why = objection(l, peer, &what);
	struct group *g;

	if (why) {
		reset_pipe(l, peer, fd, what, why);
		return;
	}
	make_place(l, peer);
	g = group_find(l, peer);
	if (!g)
		g = group_new(l, peer);
	if (!g || waiter_add(g, fd)) {
		reset_pipe(l, peer, fd, INCIDENT_MEMORY, "memory is short");
		if (g && !g->n)
			group_free(g);
		return;
	}
	if (g->n > l->each)
		reset_group(g);
	else if (l->pipes == 1)
		group_complete(g);	/* nothing can be mixed up */
	else if (g->n == l->pipes &&
		 loop_timer_in(l->loop, &g->settle, settle_time(g)))
		group_complete(g);
}

/* --- the lobby as a whole --- */

void lobby_init(struct lobby *l, const struct lobby_ops *ops, struct loop *loop,
		struct log *log, struct incidents *incidents,
		const struct access *access, unsigned int pipes)
{
	memset(l, 0, sizeof(*l));
	l->ops = ops;
	l->loop = loop;
	l->log = log;
	l->incidents = incidents;
	l->access = access;
	l->pipes = pipes;
	l->max = LOBBY_WAITING_MAX;
	l->each = 2 * pipes > LOBBY_EACH ? 2 * pipes : LOBBY_EACH;
	places_init(&l->waiting, pipes);
	l->patience = LOBBY_PATIENCE_S * NS_PER_SEC;
	entrances_init(&l->entrances, loop, log, incidents, pipe_accepted, l);
	list_init(&l->groups);
}

void lobby_close(struct lobby *l)
{
	entrances_close(&l->entrances);
	while (!list_empty(&l->groups))
		group_dismiss(list_first(&l->groups, struct group, member));
}

void lobby_print(const struct lobby *l, FILE *out)
{
	struct list *pos, *tmp;
	char host[ADDR_TEXT];

	fprintf(out, "waiting for the others of their group: %u pipe%s%s\n",
		l->waiting.n, plural(l->waiting.n),
		entrances_are_short(&l->entrances) ?
		" (no descriptors for more)" : "");
	list_each(pos, tmp, &l->groups) {
		const struct group *g = list_entry(pos, struct group, member);
		int64_t left = g->deadline.at - loop_clock();

		fprintf(out, "  %u of %u from %s, %.1f s left\n", g->n,
			l->pipes, addr_host(&g->peer, host),
			(double)left / (double)NS_PER_SEC);
	}
}
