/* SPDX-License-Identifier: MIT */
/*
 * LP's host may get other addresses and routes under a session. The kernel keeps
 * a pipe whose address is gone for many minutes, and says nothing; so pipes are looked
 * at whenever it reports a change. A pipe ends when its address is none of this host's
 * any more, or when its packets would leave by another device or gateway than when
 * it began: behind that one may be another network, or another translation of
 * addresses. While there is no route at all it stays: whoever replaces a route may take
 * away the old one first. And so it does while its device is down or without a link, which may
 * be short, unless another path has a pipe whose device is up: that one takes over then.
 *
 * A path that loses all its pipes so is down, and RP is told over another one.
 */
#include <stdio.h>

#include "../base/host.h"
#include "../base/log.h"
#include "../base/sock.h"
#include "extended.h"

/* Both ends of @fd. A pipe that is reset has none. */
static bool ends_of(int fd, struct sockaddr_storage *from,
		    struct sockaddr_storage *to)
{
	socklen_t len = sizeof(*to);

	return !sock_address(fd, from) &&
	       !getpeername(fd, (struct sockaddr *)to, &len);
}

/* The device that @fd is bound to, or 0: routes of others do not matter to it. */
static uint32_t device_of(int fd)
{
	socklen_t len = sizeof(int);
	int device = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, &len))
		return 0;
	return (uint32_t)device;
}

void roaming_note(struct leg *leg, int fd)
{
	struct sockaddr_storage from, to;

	leg->route = (struct route){ 0 };
	if (ends_of(fd, &from, &to))
		route_ask(&leg->route, device_of(fd), &from, &to);
}

/*
 * Of one that is bound to a device the kernel takes all the world for a neighbour while it has
 * no route: there is none then, as of others.
 */
static bool has_no_route(const struct leg *leg, uint32_t device,
			 const struct route *now)
{
	return device && route_has_gateway(&leg->route) &&
	       !route_has_gateway(now);
}

/* Is there a pipe on another path than @leg's whose device is up? */
static bool another_path_is_up(const struct extended *x, const struct leg *leg,
			       const struct host *host)
{
	unsigned int i;

	for (i = 0; i < x->s->paths.npipes; i++) {
		const struct leg *other = &x->leg[x->s->paths.pipes[i]->index];

		if (other->path != leg->path &&
		    host_runs(host, other->route.device))
			return true;
	}
	return false;
}

/* Why what is sent on @fd does not leave as it did; NULL: it does, or may again. */
static const char *what_changed(const struct extended *x, struct leg *leg,
				const struct host *host, int fd)
{
	struct sockaddr_storage from, to;
	uint32_t device = device_of(fd);
	struct route now;

	if (!ends_of(fd, &from, &to))
		return NULL;
	if (!host_has(host, &from))
		return "is this host's no more";
	if (leg->route.device && !host_runs(host, leg->route.device) &&
	    another_path_is_up(x, leg, host))
		return "has a device that is down";
	if (route_ask(&now, device, &from, &to) ||
	    has_no_route(leg, device, &now))
		return NULL;
	if (leg->route.device && !route_same(&leg->route, &now))
		return "goes another way now";
	leg->route = now;
	return NULL;
}

/* MPTCP goes on by itself over what other addresses there are. */
static bool has_several(struct pipe *p)
{
	if (p->transport != TRANSPORT_MPTCP)
		return false;
	pipe_look_closely(p, loop_clock());
	return p->info.subflows > 1;
}

static void look_at_pipe(struct session *s, struct pipe *p,
			 const struct host *host)
{
	const char *what = has_several(p) ? NULL :
		what_changed(s->ext, &s->ext->leg[p->index], host, p->fd);
	struct sockaddr_storage from;
	char text[ADDR_TEXT], why[128];

	if (!what) {
		control_ask(s, p);
		return;
	}
	sock_address(p->fd, &from);
	snprintf(why, sizeof(why), "pipe %u: %s, where it leaves from, %s",
		 p->index, addr_host(&from, text), what);
	extended_pipe_ended(s, p, false, why);
}

static void look_at_joining(const struct extended *x, struct leg *leg,
			    const struct host *host)
{
	if (!leg->joining ||
	    !what_changed(x, leg, host, greeting_fd(leg->joining)))
		return;
	greeting_free(leg->joining);
	leg->joining = NULL;
}

static void roam(struct extended *x, const struct host *host)
{
	struct session *s = x->s;
	bool had[PATHS_MAX];
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++)
		had[i] = s->paths.path[i].npipes > 0;
	/* A pipe that has ended leaves its place to the one behind it. */
	for (i = s->paths.npipes; i-- > 0;)
		look_at_pipe(s, s->paths.pipes[i], host);
	for (i = 0; i < PIPES_MAX; i++)
		look_at_joining(x, &x->leg[i], host);
	for (i = 0; i < PATHS_MAX; i++) {
		if (had[i] && !s->paths.path[i].npipes && s->paths.npipes)
			ways_down(&x->way[i]);
	}
	joining_now(x);
}

/* All pipes of the baseline go with the first, when it is found dead. */
static void say(struct session *s, const struct host *host)
{
	struct sockaddr_storage from;
	char text[ADDR_TEXT];

	if (!s->paths.npipes || sock_address(s->paths.pipes[0]->fd, &from) ||
	    host_has(host, &from))
		return;
	log_warn(s->engine->log, "session %u: %s, where its pipes leave from, is this host's no more",
		 s->number, addr_host(&from, text));
}

void session_roam(struct session *s, const struct host *host)
{
	if (!session_is_up(s))
		return;
	if (!s->ext)
		say(s, host);
	else if (s->ext->lp)
		roam(s->ext, host);
}
