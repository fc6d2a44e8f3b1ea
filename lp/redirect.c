/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redirect.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

/* Behind netinet/in.h, which it gives way to. */
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>

#include "../mux/base/addr.h"
#include "../mux/base/host.h"
#include "../mux/base/log.h"
#include "../mux/base/sock.h"
#include "../mux/conn/address.h"
#include "../mux/conn/conn.h"
#include "../mux/session/session.h"
#include "../mux/settings/incident.h"
#include "dialer.h"
#include "origin.h"
#include "proxy.h"

/* @listening: what it was redirected to, which is of the same family. */
static int original_destination(int fd, const struct sockaddr_storage *listening,
				struct sockaddr_storage *to)
{
	socklen_t len = addr_size(listening);
	int err;

	/* First: of such a one connection tracking, too, thinks to know it. */
	if (!origin_of(fd, to))
		return 0;
	memset(to, 0, sizeof(*to));
	if (listening->ss_family == AF_INET6)
		err = getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, to, &len);
	else
		err = getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, to, &len);
	if (err < 0)
		return -errno;
	return to->ss_family == listening->ss_family ? 0 : -EAFNOSUPPORT;
}

/* Why it cannot be relayed, "" if the dialer will say it, or NULL. */
static const char *objection(const struct proxy *p, const struct listener *l,
			     int fd, struct sockaddr_storage *to)
{
	if (original_destination(fd, listener_addr(l), to))
		return "was not redirected here by the kernel: it has no "
		       "original destination";
	if (addr_port(to) == addr_port(listener_addr(l)) && host_owns(to))
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

	if (incidents_note_peer(p->engine->limits, INCIDENT_CLIENTS, peer))
		log_warn(p->log, "reset a connection from %s: it %s",
			 addr_text(peer, text), why);
}

static void accepted(struct listener *l, int fd,
		     const struct sockaddr_storage *peer)
{
	struct proxy *p = listener_owner(l);
	struct sockaddr_storage to;
	struct destination target;
	const char *why = objection(p, l, fd, &to);
	int err = -EINVAL;

	if (!why) {
		target = address_destination(&to);
		err = proxy_open(p, fd, &target, NULL);
	}
	if (err == -EAFNOSUPPORT)
		why = "wants an IPv6 address, and rp was reached by the "
		      "baseline, which carries IPv4 alone";
	if (why && *why)
		warn(p, peer, why);
	if (err)
		sock_reset(fd);
}

static void prepare(int fd)
{
	sock_ask_early(fd);
	conn_prepare(fd);
}

bool redirect_start(struct proxy *p, const struct sockaddr_storage *addr,
		    socklen_t len)
{
	static const struct purpose purpose = {
		.option = "--redirect",
		.what = "redirected connections on",
		.keeps_syns = true,
		.prepare = prepare,
	};

	return ways_in_listen(p, addr, len, accepted, p, &purpose);
}
