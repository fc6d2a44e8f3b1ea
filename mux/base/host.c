/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Behind sys/socket.h, which they need. */
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "addr.h"
#include "log.h"
#include "route.h"
#include "sock.h"

enum { REPORT_MAX = 8192 };

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct in6_addr));
}

/* IPv4 as IPv6 that wraps it. False: it is neither. */
static bool make_key(const struct sockaddr *addr, struct in6_addr *key)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr && addr->sa_family == AF_INET6) {
		*key = in6->sin6_addr;
		return true;
	}
	if (!addr || addr->sa_family != AF_INET)
		return false;
	memset(key, 0, sizeof(*key));
	key->s6_addr[10] = key->s6_addr[11] = 0xff;
	memcpy(key->s6_addr + 12, &in->sin_addr, 4);
	return true;
}

static struct in6_addr *copy(const struct ifaddrs *all, size_t *n)
{
	const struct ifaddrs *i;
	struct in6_addr *addr;
	size_t count = 0;

	for (i = all; i; i = i->ifa_next)
		count++;
	addr = calloc(count + 1, sizeof(*addr));
	if (!addr)
		return NULL;
	*n = 0;
	for (i = all; i; i = i->ifa_next)
		*n += make_key(i->ifa_addr, &addr[*n]);
	qsort(addr, *n, sizeof(*addr), compare);
	return addr;
}

/* Each device has an entry of its own beside those of its addresses. */
static unsigned int *copy_running(const struct ifaddrs *all, size_t *n)
{
	const unsigned int runs = IFF_UP | IFF_RUNNING;
	unsigned int *running;
	const struct ifaddrs *i;
	size_t count = 0;

	for (i = all; i; i = i->ifa_next)
		count++;
	running = calloc(count + 1, sizeof(*running));
	if (!running)
		return NULL;
	*n = 0;
	for (i = all; i; i = i->ifa_next) {
		const struct sockaddr_ll *device = (const void *)i->ifa_addr;

		if (device && device->sll_family == AF_PACKET &&
		    (i->ifa_flags & runs) == runs)
			running[(*n)++] = (unsigned int)device->sll_ifindex;
	}
	return running;
}

/* When they cannot be read, those of before are better than none. */
static void read_addresses(struct host *h)
{
	struct ifaddrs *all;
	struct in6_addr *addr;
	unsigned int *running;
	size_t n = 0, nrunning = 0;

	if (getifaddrs(&all)) {
		log_warn(h->log, "this host's addresses cannot be read: %s",
			 strerror(errno));
		return;
	}
	addr = copy(all, &n);
	running = copy_running(all, &nrunning);
	freeifaddrs(all);
	if (!addr || !running) {
		free(addr);
		free(running);
		return;
	}
	free(h->addr);
	free(h->running);
	h->addr = addr;
	h->n = n;
	h->running = running;
	h->nrunning = nrunning;
	if (h->asked)
		memset(h->asked, 0, HOST_ASKED * sizeof(*h->asked));
}

/* --- changes --- */

static void tell(struct host *h)
{
	int64_t now = loop_clock();

	h->pause = now - h->told_at > 2 * HOST_GATHER_MS * NS_PER_MS ?
		HOST_SOON_MS : 2 * h->pause;
	if (h->pause > HOST_GATHER_MS)
		h->pause = HOST_GATHER_MS;
	h->told_at = now;
	h->more = false;
	loop_timer_in(h->loop, &h->gather, h->pause * NS_PER_MS);
	h->changed(h);
}

static void gathered(struct timer *t)
{
	struct host *h = container_of(t, struct host, gather);

	if (h->more)
		tell(h);
}

/* What changed does not matter, nor how many reports were lost. */
static void has_changed(struct watch *w, uint32_t events)
{
	struct host *h = container_of(w, struct host, watch);
	char report[REPORT_MAX];

	(void)events;
	while (recv(w->fd, report, sizeof(report), 0) >= 0 || errno == ENOBUFS)
		;
	read_addresses(h);
	h->more = true;
	if (h->changed && !h->gather.slot)
		tell(h);
}

static int follow(struct host *h)
{
	struct sockaddr_nl kernel = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			NETLINK_ROUTE);
	int err;

	if (fd < 0)
		return -errno;
	if (h->changed)
		kernel.nl_groups |= RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE |
				    RTMGRP_LINK;
	err = bind(fd, (struct sockaddr *)&kernel, sizeof(kernel)) ? -errno :
	      loop_watch(h->loop, &h->watch, fd, EPOLLIN);
	if (err)
		close(fd);
	return err;
}

/* Reports first: no change is missed between them and the reading. */
void host_open(struct host *h, struct loop *loop, struct log *log,
	       void (*changed)(struct host *h))
{
	int err;

	*h = (struct host){ .loop = loop, .log = log, .changed = changed };
	h->gather.fire = gathered;
	h->watch.fd = -1;
	h->watch.ready = has_changed;
	h->asked = calloc(HOST_ASKED, sizeof(*h->asked));
	err = follow(h);
	if (err)
		log_warn(log, "changes of this host's addresses cannot be "
			 "followed: %s", strerror(-err));
	read_addresses(h);
}

void host_close(struct host *h)
{
	loop_close(h->loop, &h->watch);
	loop_timer_stop(h->loop, &h->gather);
	free(h->addr);
	free(h->asked);
	free(h->running);
	h->addr = NULL;
	h->asked = NULL;
	h->running = NULL;
	h->n = h->nrunning = 0;
}

/* They could not be read, as where a process may have no netlink sockets. */
static bool can_be_bound(const struct sockaddr_storage *addr)
{
	struct sockaddr_storage unmapped = *addr;

	addr_unmap(&unmapped);
	return host_owns(&unmapped);
}

static struct host_asked *place_of(const struct host *h,
				   const struct in6_addr *key)
{
	unsigned int hash = 0, i;

	for (i = 0; i < sizeof(key->s6_addr); i++)
		hash = 31 * hash + key->s6_addr[i];
	return &h->asked[hash % HOST_ASKED];
}

/* It is on no device: by a route? */
static bool is_routed_here(const struct host *h, const struct in6_addr *key,
			   const struct sockaddr_storage *addr)
{
	int64_t now = loop_now(h->loop);
	struct host_asked *asked;

	if (!h->asked)
		return route_ends_here(addr) != 0;
	asked = place_of(h, key);
	if (now >= asked->until || memcmp(&asked->addr, key, sizeof(*key))) {
		int here = route_ends_here(addr);

		if (here < 0)
			return true;
		asked->addr = *key;
		asked->own = here;
		asked->until = now + HOST_ASKED_MS * NS_PER_MS;
	}
	return asked->own;
}

bool host_has(const struct host *h, const struct sockaddr_storage *addr)
{
	struct in6_addr key;

	if (addr_is_loopback(addr))
		return true;
	if (!h->addr)
		return can_be_bound(addr);
	if (!make_key((const void *)addr, &key))
		return false;
	return bsearch(&key, h->addr, h->n, sizeof(*h->addr), compare) ||
	       is_routed_here(h, &key, addr);
}

/* Then a socket can be bound to it. */
bool host_owns(const struct sockaddr_storage *addr)
{
	struct sockaddr_storage any_port = *addr;
	int fd;

	addr_set_port(&any_port, 0);
	fd = sock_bound_udp(&any_port);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool host_runs(const struct host *h, unsigned int device)
{
	size_t i = 0;

	while (i < h->nrunning && h->running[i] != device)
		i++;
	return !h->nrunning || i < h->nrunning;
}
