/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "association.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/list.h"
#include "../mux/base/log.h"
#include "../mux/base/loop.h"
#include "../mux/base/seldom.h"
#include "../mux/base/sock.h"
#include "../mux/session/flow.h"
#include "../mux/settings/incident.h"
#include "proxy.h"
#include "socks_udp.h"
#include "udp_port.h"

struct associations {
	struct proxy *proxy;
	struct list all;
	unsigned int count;
	int64_t said_at;	/* that datagrams are dropped; 0 never */
	/* Dropped: of others than the client, fragments, no header, no pipes. */
	unsigned long strangers, fragments, garbage, homeless;
};

struct association {
	struct associations *all;
	struct list member;
	int fd;			/* its connection, once it is ours, */
	struct watch control;	/* which is watched */
	struct udp_port port;	/* where its datagrams come in, */
	struct sockaddr_storage client;	/* and from where; port 0: not known yet */
	struct flow *flow;	/* or NULL */
};

static struct loop *loop_of(const struct association *a)
{
	return a->all->proxy->loop;
}

void association_free(struct association *a)
{
	if (a->flow)
		flow_close(a->flow);
	loop_unwatch(loop_of(a), &a->control);
	loop_close(loop_of(a), &a->port.watch);
	list_del(&a->member);
	a->all->count--;
	free(a);
}

static void drop(struct association *a)
{
	int fd = a->fd;

	association_free(a);
	sock_reset(fd);
}

/* --- one that cannot be --- */

static enum incident limit_of(int err)
{
	switch (err) {
	case EUSERS:
		return INCIDENT_FLOWS;
	case EADDRINUSE:
	case EADDRNOTAVAIL:
		return INCIDENT_PORTS;
	case EMFILE:
	case ENFILE:
		return INCIDENT_DESCRIPTORS;
	default:
		return INCIDENT_MEMORY;
	}
}

/* Of the client with the connection @control, for the reason @err, an errno. */
static void say_rejected(const struct associations *all, int control, int err)
{
	const struct proxy *p = all->proxy;
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	char text[ADDR_TEXT];

	if (getpeername(control, (struct sockaddr *)&from, &len) ||
	    !incidents_note_peer(p->engine->limits, limit_of(err), &from))
		return;
	addr_text(&from, text);
	if (err == EUSERS)
		log_warn(p->log, "refused a SOCKS5 UDP ASSOCIATE from %s: there are %d of them",
			 text, ASSOCIATIONS_MAX);
	else if (err == EMFILE)
		log_warn(p->log, "refused a SOCKS5 UDP ASSOCIATE from %s: no descriptor is left for it; more: ulimit -n (now %lu)",
			 text, sock_limit());
	else
		log_warn(p->log, "refused a SOCKS5 UDP ASSOCIATE from %s: %s",
			 text, strerror(err));
}

/* --- the control connection --- */

/* What a client says on it has no meaning; its end has. */
static void control_ready(struct watch *w, uint32_t events)
{
	struct association *a = container_of(w, struct association, control);
	uint8_t waste[4096];
	ssize_t got = recv(w->fd, waste, sizeof(waste), 0);
	int fd = a->fd;

	(void)events;
	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	association_free(a);
	sock_orderly(fd);
	close(fd);
}

void association_start(struct association *a)
{
	int err;

	a->control.ready = control_ready;
	err = loop_watch(loop_of(a), &a->control, a->fd, EPOLLIN | EPOLLRDHUP);
	if (!err)
		return;
	say_rejected(a->all, a->fd, -err);
	drop(a);
}

/* --- to the client --- */

static void came(struct flow *f, const struct destination *at,
		 const uint8_t *payload, size_t len)
{
	struct association *a = flow_owner(f);
	uint8_t head[SOCKS_UDP_HEAD_MAX];
	struct iovec parts[2] = {
		{ head, socks_udp_put(head, at) },
		{ (void *)(uintptr_t)payload, len },
	};

	if (parts[0].iov_len && addr_port(&a->client))
		flow_put(f, a->port.watch.fd, &a->client, parts, 2);
	else
		flow_lost(f, FLOW_UNSENT);
}

static void ended(struct flow *f)
{
	struct association *a = flow_owner(f);

	a->flow = NULL;
}

static const struct flow_ops flow_ops = { .came = came, .ended = ended };

/* --- from the client --- */

static void say_dropped(struct associations *all, const char *why)
{
	if (seldom(&all->said_at, all->proxy->loop))
		log_warn(all->proxy->log, "SOCKS5: datagrams are dropped: %s",
			 why);
}

/* Is there a flow? Else why not was said. */
static bool has_flow(struct association *a)
{
	static const struct destination any = { .kind = DESTINATION_NONE };
	struct proxy *p = a->all->proxy;

	if (!a->flow)
		a->flow = proxy_open_flow(p, &any, &flow_ops, a);
	if (a->flow)
		return true;
	a->all->homeless++;
	say_dropped(a->all, proxy_no_flows(p));
	return false;
}

static void pass_on(struct association *a, const uint8_t *buf, size_t len)
{
	struct associations *all = a->all;
	struct destination to;
	size_t head = 0;

	switch (socks_udp_get(buf, len, &to, &head)) {
	case SOCKS_UDP_FRAGMENT:
		all->fragments++;
		return;
	case SOCKS_UDP_GARBAGE:
		all->garbage++;
		return;
	case SOCKS_UDP_SOUND:
		break;
	}
	if (to.kind == DESTINATION_NAME && !proxy_carries_names(all->proxy)) {
		all->homeless++;
		say_dropped(all, "they go to names, which --names lp does not look up for them");
		return;
	}
	if (has_flow(a))
		flow_send(a->flow, &to, buf + head, len - head);
}

static bool is_clients(struct association *a,
		       const struct sockaddr_storage *from)
{
	if (!addr_same_host(from, &a->client))
		return false;
	if (!addr_port(&a->client))
		addr_set_port(&a->client, addr_port(from));
	return addr_port(from) == addr_port(&a->client);
}

static void datagram(struct udp_port *port, const struct sockaddr_storage *from,
		     const struct sockaddr_storage *to, const uint8_t *buf,
		     size_t len)
{
	struct association *a = container_of(port, struct association, port);

	(void)to;
	if (is_clients(a, from))
		pass_on(a, buf, len);
	else
		a->all->strangers++;
}

/* --- from beginning to end --- */

/* On the address where the client came in, which it can reach. 0 or -errno. */
static int open_port(struct association *a, int control)
{
	socklen_t len = sizeof(a->client);
	struct sockaddr_storage addr;
	int err = sock_address(control, &addr);

	if (!err && getpeername(control, (struct sockaddr *)&a->client, &len))
		err = -errno;
	if (err)
		return err;
	addr_unmap(&addr);	/* its listener may take both */
	addr_unmap(&a->client);
	addr_set_port(&addr, 0);
	return udp_port_open(&a->port, loop_of(a), &addr);
}

/* NULL: @err says why. */
static struct association *make(struct associations *all, int control, int *err)
{
	struct association *a;

	*err = -EUSERS;
	if (all->count == ASSOCIATIONS_MAX)
		return NULL;
	*err = -ENOMEM;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->all = all;
	a->fd = control;
	a->control.fd = a->port.watch.fd = -1;
	a->port.came = datagram;
	list_add_tail(&all->all, &a->member);
	all->count++;
	*err = open_port(a, control);
	if (!*err)
		return a;
	association_free(a);
	return NULL;
}

struct association *association_new(struct associations *all, int control,
				    const struct destination *from)
{
	int err;
	struct association *a = make(all, control, &err);

	if (a)
		addr_set_port(&a->client, from->port);
	else
		say_rejected(all, control, -err);
	return a;
}

const struct sockaddr_storage *association_addr(const struct association *a)
{
	return &a->port.addr;
}

struct associations *associations_new(struct proxy *p)
{
	struct associations *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->proxy = p;
	list_init(&all->all);
	return all;
}

void associations_free(struct associations *all)
{
	if (!all)
		return;
	while (!list_empty(&all->all))
		drop(list_first(&all->all, struct association, member));
	free(all);
}

void associations_print(const struct associations *all, FILE *out)
{
	if (all->count)
		fprintf(out, "SOCKS5 associations: %u\n", all->count);
	if (all->strangers || all->fragments || all->garbage || all->homeless)
		fprintf(out, "SOCKS5 datagrams dropped: %lu of others than the client, %lu fragments, %lu without a header, %lu for want of a flow\n",
			all->strangers, all->fragments, all->garbage,
			all->homeless);
}
