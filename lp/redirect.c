/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redirect.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Behind netinet/in.h, which it gives way to. */
#include <linux/netfilter_ipv4.h>

#include "../mux/base/log.h"
#include "../mux/base/sock.h"
#include "dialer.h"
#include "proxy.h"

static int original_destination(int fd, struct sockaddr_storage *to)
{
	socklen_t len = sizeof(struct sockaddr_in);

	memset(to, 0, sizeof(*to));
	if (getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, to, &len) < 0)
		return -errno;
	return to->ss_family == AF_INET ? 0 : -EAFNOSUPPORT;
}

/* Does this machine have that address? Then a socket can be bound to it. */
static bool is_ours(const struct sockaddr_storage *addr)
{
	struct sockaddr_in in = *(const struct sockaddr_in *)(const void *)addr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ours;

	if (fd < 0)
		return false;
	in.sin_port = 0;
	ours = !bind(fd, (const struct sockaddr *)&in, sizeof(in));
	close(fd);
	return ours;
}

/* Why it cannot be relayed, "" if the dialer will say it, or NULL. */
static const char *objection(const struct proxy *p, const struct listener *l,
			     int fd, struct sockaddr_storage *to)
{
	if (original_destination(fd, to))
		return "was not redirected here by the kernel: it has no "
		       "original destination";
	if (addr_port(to) == addr_port(listener_addr(l)) && is_ours(to))
		return "wants lp itself: it was not redirected, or it would "
		       "go round in circles";
	if (dialer_goes_to(p->dialer, to))
		return dialer_came_back(p->dialer) ? "" :
		       "wants the port for pipes";
	return NULL;
}

static void warn(const struct proxy *p, const struct sockaddr_storage *peer,
		 const char *why)
{
	char text[ADDR_TEXT];

	log_warn(p->log, "reset a connection from %s: it %s",
		 addr_text(peer, text), why);
}

static void accepted(struct listener *l, int fd,
		     const struct sockaddr_storage *peer)
{
	struct proxy *p = listener_owner(l);
	struct sockaddr_storage to;
	const struct sockaddr_in *in = (const void *)&to;
	const char *why = objection(p, l, fd, &to);

	if (why && *why)
		warn(p, peer, why);
	if (why || proxy_open(p, fd, (const uint8_t *)&in->sin_addr,
			      addr_port(&to)))
		sock_reset(fd);
}

bool redirect_start(struct proxy *p, const struct sockaddr_storage *addr,
		    socklen_t len)
{
	static const struct purpose purpose = {
		.option = "--redirect",
		.what = "redirected connections on",
	};

	return proxy_listen(p, addr, len, accepted, p, &purpose);
}
