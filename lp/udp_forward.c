/* SPDX-License-Identifier: MIT */
#include "udp_forward.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/host.h"
#include "../mux/base/list.h"
#include "../mux/base/log.h"
#include "../mux/base/loop.h"
#include "../mux/base/plural.h"
#include "../mux/base/seldom.h"
#include "../mux/session/flow.h"
#include "proxy.h"
#include "rule.h"
#include "udp_port.h"

enum { BUCKETS = 256 };

struct udp_forward {
	struct proxy *proxy;
	const struct rule *rule;
	char to[ENDPOINT_TEXT];
	struct udp_port port;
	struct list clients;	/* who sent something last stands last */
	struct list bucket[BUCKETS];
	unsigned int count;
	unsigned long dropped;	/* datagrams, for want of a flow */
	int64_t said_at;	/* that they are; 0 never */
};

struct client {
	struct udp_forward *forward;
	struct list member;
	struct list bucket;
	struct sockaddr_storage addr;
	struct sockaddr_storage to;	/* as udp_port has it, or AF_UNSPEC */
	struct flow *flow;
};

static void forget(struct client *c)
{
	list_del(&c->member);
	list_del(&c->bucket);
	c->forward->count--;
	free(c);
}

static void drop(struct client *c)
{
	flow_close(c->flow);
	forget(c);
}

/* --- to clients --- */

static void came(struct flow *f, const struct destination *at,
		 const uint8_t *payload, size_t len)
{
	struct iovec whole = { (void *)(uintptr_t)payload, len };
	struct client *c = flow_owner(f);

	(void)at;
	flow_put(f, c->forward->port.watch.fd, &c->addr, &whole, 1);
}

static void ended(struct flow *f)
{
	forget(flow_owner(f));
}

static const struct flow_ops flow_ops = { .came = came, .ended = ended };

/* --- from clients --- */

static struct list *bucket_of(struct udp_forward *f,
			      const struct sockaddr_storage *addr)
{
	return &f->bucket[addr_hash(addr) % BUCKETS];
}

static bool is_of(const struct client *c, const struct sockaddr_storage *addr,
		  const struct sockaddr_storage *to)
{
	return addr_same(&c->addr, addr) && (!to || addr_same(&c->to, to));
}

static struct client *find(struct udp_forward *f,
			   const struct sockaddr_storage *addr,
			   const struct sockaddr_storage *to)
{
	struct list *bucket = bucket_of(f, addr), *pos, *tmp;

	list_each(pos, tmp, bucket) {
		struct client *c = list_entry(pos, struct client, bucket);

		if (is_of(c, addr, to))
			return c;
	}
	return NULL;
}

/* It expects answers from where it sent to, unless that was to many at once. */
static void answer_from(struct client *c, const struct sockaddr_storage *to)
{
	c->to = *to;
	if (host_owns(to))
		flow_leaves_from(c->flow, &c->to);
}

static struct client *add(struct udp_forward *f,
			  const struct sockaddr_storage *addr,
			  const struct sockaddr_storage *to)
{
	struct client *c;

	if (f->count == UDP_CLIENTS_MAX)
		drop(list_first(&f->clients, struct client, member));
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->flow = proxy_open_flow(f->proxy, &f->rule->dst, &flow_ops, c);
	if (!c->flow) {
		free(c);
		return NULL;
	}
	c->forward = f;
	c->addr = *addr;
	if (to)
		answer_from(c, to);
	list_add_tail(&f->clients, &c->member);
	list_add_tail(bucket_of(f, addr), &c->bucket);
	f->count++;
	return c;
}

static void datagram(struct udp_port *port, const struct sockaddr_storage *from,
		     const struct sockaddr_storage *to, const uint8_t *payload,
		     size_t len)
{
	struct udp_forward *f = container_of(port, struct udp_forward, port);
	struct client *c = find(f, from, to);

	if (!c)
		c = add(f, from, to);
	if (c) {
		list_move_tail(&f->clients, &c->member);
		flow_send(c->flow, NULL, payload, len);
		return;
	}
	f->dropped++;
	if (seldom(&f->said_at, f->proxy->loop))
		log_warn(f->proxy->log, "datagrams for %s are dropped: %s",
			 f->to, proxy_no_flows(f->proxy));
}

/* --- from beginning to end --- */

struct udp_forward *udp_forward_new(struct proxy *p, const struct rule *rule)
{
	struct udp_forward *f = calloc(1, sizeof(*f));
	char text[ADDR_TEXT];
	int i, err;

	if (!f) {
		log_error(p->log, "no memory for --forward");
		return NULL;
	}
	f->proxy = p;
	f->rule = rule;
	f->port.came = datagram;
	endpoint_text(&rule->to, f->to);
	list_init(&f->clients);
	for (i = 0; i < BUCKETS; i++)
		list_init(&f->bucket[i]);
	err = udp_port_open(&f->port, p->loop, &rule->addr);
	if (!err)
		return f;
	free(f);
	p->ways_in.listen_err = err;
	p->ways_in.listen_addr = rule->addr;
	if (err != -EADDRNOTAVAIL)	/* it is waited for */
		log_error(p->log, "cannot take datagrams at %s: %s; --forward chooses another address",
			  addr_text(&rule->addr, text), strerror(-err));
	return NULL;
}

void udp_forward_free(struct udp_forward *f)
{
	while (!list_empty(&f->clients))
		drop(list_first(&f->clients, struct client, member));
	loop_close(f->proxy->loop, &f->port.watch);
	free(f);
}

void udp_forward_announce(const struct udp_forward *f)
{
	char text[ADDR_TEXT];

	log_info(f->proxy->log, "forwarding UDP at %s to %s",
		 addr_text(&f->port.addr, text), f->to);
	if (!addr_is_loopback(&f->port.addr))
		log_warn(f->proxy->log, "--forward udp:%s serves everybody who can reach it",
			 text);
}

void udp_forward_print(const struct udp_forward *f, FILE *out)
{
	if (f->count || f->dropped)
		fprintf(out, "UDP to %s: %u client%s, %lu datagram%s dropped for want of a flow\n",
			f->to, f->count, plural(f->count), f->dropped,
			plural(f->dropped));
}
