/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Behind sys/socket.h, which they need. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "../mux/base/log.h"
#include "../mux/base/sock.h"

enum { REPORT_MAX = 8192 };

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(uint32_t));
}

static bool is_v4(const struct ifaddrs *i)
{
	return i->ifa_addr && i->ifa_addr->sa_family == AF_INET;
}

static uint32_t *copy(const struct ifaddrs *all, size_t *n)
{
	const struct ifaddrs *i;
	uint32_t *addr;
	size_t count = 0;

	for (i = all; i; i = i->ifa_next)
		count += is_v4(i);
	addr = calloc(count + 1, sizeof(*addr));
	if (!addr)
		return NULL;
	*n = 0;
	for (i = all; i; i = i->ifa_next) {
		const struct sockaddr_in *in = (const void *)i->ifa_addr;

		if (is_v4(i))
			addr[(*n)++] = in->sin_addr.s_addr;
	}
	qsort(addr, *n, sizeof(*addr), compare);
	return addr;
}

/* When they cannot be read, those of before are better than none. */
static void read_addresses(struct host *h)
{
	struct ifaddrs *all;
	uint32_t *addr;
	size_t n = 0;

	if (getifaddrs(&all)) {
		log_warn(h->log, "this host's addresses cannot be read: %s",
			 strerror(errno));
		return;
	}
	addr = copy(all, &n);
	freeifaddrs(all);
	if (!addr)
		return;
	free(h->addr);
	h->addr = addr;
	h->n = n;
}

/* What changed does not matter, nor how many reports were lost. */
static void addresses_changed(struct watch *w, uint32_t events)
{
	struct host *h = container_of(w, struct host, watch);
	char report[REPORT_MAX];

	(void)events;
	while (recv(w->fd, report, sizeof(report), 0) >= 0 || errno == ENOBUFS)
		;
	read_addresses(h);
}

static int follow(struct host *h)
{
	struct sockaddr_nl kernel = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_IPV4_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			NETLINK_ROUTE);
	int err;

	if (fd < 0)
		return -errno;
	err = bind(fd, (struct sockaddr *)&kernel, sizeof(kernel)) ? -errno :
	      loop_watch(h->loop, &h->watch, fd, EPOLLIN);
	if (err)
		close(fd);
	return err;
}

/* Reports first: no change is missed between them and the reading. */
void host_open(struct host *h, struct loop *loop, struct log *log)
{
	int err;

	*h = (struct host){ .loop = loop, .log = log };
	h->watch.fd = -1;
	h->watch.ready = addresses_changed;
	err = follow(h);
	if (err)
		log_warn(log, "changes of this host's addresses cannot be "
			 "followed: %s", strerror(-err));
	read_addresses(h);
}

void host_close(struct host *h)
{
	loop_close(h->loop, &h->watch);
	free(h->addr);
	h->addr = NULL;
	h->n = 0;
}

bool host_has(const struct host *h, const uint8_t addr[4])
{
	return addr[0] == 127 ||
	       (h->n && bsearch(addr, h->addr, h->n, sizeof(*h->addr), compare));
}

bool host_is_peer(const struct host *h, const struct sockaddr_storage *peer)
{
	uint8_t v4[4];

	return addr_v4(peer, v4) ? host_has(h, v4) : addr_is_loopback(peer);
}
