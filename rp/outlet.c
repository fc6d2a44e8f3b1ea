/* SPDX-License-Identifier: MIT */
#include "outlet.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/loop.h"
#include "../mux/base/path_mtu.h"
#include "../mux/base/seldom.h"
#include "../mux/base/sock.h"
#include "../mux/base/udp_in.h"
#include "../mux/conn/address.h"
#include "../mux/extension/datagrams.h"
#include "../mux/session/flow.h"
#include "../mux/session/session.h"
#include "connects.h"
#include "quota.h"
#include "reach.h"

/* A name that datagrams go to. */
struct known {
	struct list member;
	struct outlet *outlet;
	struct destination name;
	struct finding *finding;	/* its address is looked for; or NULL */
	bool has_address;
	struct sockaddr_storage addr;
	int64_t until;
	struct datagram_queue waiting;
};

struct waiting {
	struct datagram_item item;
	uint8_t payload[];
};

struct outlet {
	struct outlets *all;
	struct flow *flow;
	struct watch watch;
	int family;		/* of its socket */
	bool connected;
	unsigned int mtu;	/* of its path, when it was last asked for; */
	bool told_mtu;		/* LP was told of this one */
	struct list names;	/* the one that was asked for first */
	unsigned int nnames;
	int refusal;		/* an errno that sending met; */
	struct task refused;	/* it ends the flow after the batch */
	struct task narrowed;	/* LP is told of the path's MTU, then, too */
};

static struct engine *engine_of(const struct outlet *o)
{
	return o->all->connector->all->engine;
}

static void say_denied(struct outlet *o, const struct sockaddr_storage *to,
		       const char *why)
{
	struct engine *engine = engine_of(o);
	char text[CONN_TEXT], addr[ADDR_TEXT];

	if (seldom(&o->all->said_at, engine->loop))
		log_warn(engine->log, "%s: datagrams for %s denied: %s",
			 conn_text(flow_conn(o->flow), text),
			 addr_text(to, addr), why);
}

static bool may_pass(struct outlet *o, const struct sockaddr_storage *addr,
		     bool say)
{
	const struct connector *c = o->all->connector;
	char why[ACCESS_WHY];

	if (reach_allows(c->all->reach, addr, c->local, why))
		return true;
	if (say)
		say_denied(o, addr, why);
	return false;
}

/* --- names --- */

static void account(struct outlet *o, int64_t bytes)
{
	o->all->waiting += (size_t)bytes;
	flow_charge(o->flow, bytes);
}

static void drop_waiting(struct known *k, struct datagram_item *item)
{
	account(k->outlet, -(int64_t)datagram_memory(item));
	free(container_of(item, struct waiting, item));
}

static void forget(struct known *k)
{
	struct datagram_item *item;

	while ((item = datagrams_take(&k->waiting)))
		drop_waiting(k, item);
	if (k->finding)
		finding_give_up(k->finding);
	list_del(&k->member);
	k->outlet->nnames--;
	flow_charge(k->outlet->flow, -(int64_t)sizeof(*k));
	free(k);
}

/* --- the flow and its socket end --- */

static void outlet_free(struct outlet *o)
{
	while (!list_empty(&o->names))
		forget(list_first(&o->names, struct known, member));
	loop_task_stop(&o->refused);
	loop_task_stop(&o->narrowed);
	if (o->watch.fd >= 0) {
		loop_close(engine_of(o)->loop, &o->watch);
		connector_counts(o->all->connector, -1);
	}
	free(o);
}

static void refuse(struct outlet *o, enum conn_end why)
{
	flow_refuse(o->flow, why);
	outlet_free(o);
}

static void ended(struct flow *f)
{
	outlet_free(flow_owner(f));
}

/* --- in: from servers --- */

static void pass_on(struct outlet *o, struct sockaddr_storage *from,
		    const uint8_t *payload, size_t len)
{
	struct destination at;

	if (o->connected) {
		flow_send(o->flow, NULL, payload, len);
		return;
	}
	addr_unmap(from);
	if (!may_pass(o, from, false)) {
		flow_lost(o->flow, FLOW_DENIED);
		return;
	}
	at = address_destination(from);
	flow_send(o->flow, &at, payload, len);
}

/*
 * What an ICMP error told about a server that is the only one: nobody is there. Where
 * there are many the kernel does not tell whom it is about.
 */
static bool is_refusal(const struct outlet *o, int err)
{
	return o->connected && (err == ECONNREFUSED || err == EHOSTUNREACH ||
				err == ENETUNREACH || err == EACCES);
}

static enum conn_end end_of(int err)
{
	return err == ECONNREFUSED ? CONN_END_REFUSED : CONN_END_UNREACHABLE;
}

/*
 * Something is larger than the path takes in one packet, or was, as an ICMP error told. What may go in
 * fragments does, and LP hears of it once.
 */
static void narrow(struct flow *f, bool whole)
{
	struct outlet *o = flow_owner(f);

	if (o->connected && (whole || !o->told_mtu))
		loop_after(engine_of(o)->loop, &o->narrowed);
}

static void narrowed(struct task *t)
{
	struct outlet *o = container_of(t, struct outlet, narrowed);
	int mtu = path_mtu(o->watch.fd);

	if (mtu < 0)
		return;
	o->mtu = (unsigned int)mtu;
	o->told_mtu = true;
	flow_tell_mtu(o->flow, o->mtu);
}

/*
 * The kernel says nothing of that. A program may want to know: IPv6 does not tell whose
 * packets must not be fragmented.
 */
static bool goes_in_fragments(const struct outlet *o, size_t len)
{
	return path_mtu_packet(o->family, len) > o->mtu;
}

static void server_said(void *arg, struct sockaddr_storage *from,
			const uint8_t *buf, size_t len)
{
	struct outlet *o = arg;

	if (len > UDP_IN_SLOT)
		flow_lost(o->flow, FLOW_LARGE);
	else
		pass_on(o, from, buf, len);
}

static void readable(struct watch *w, uint32_t events)
{
	struct outlet *o = container_of(w, struct outlet, watch);
	int err = -udp_in_read(w->fd, server_said, o);

	(void)events;
	if (err == EMSGSIZE)	/* by ICMP: the path is another one than before */
		narrow(o->flow, true);
	else if (err && is_refusal(o, err))
		refuse(o, end_of(err));
}

/* --- out: to servers --- */

/* An IPv6 socket that takes both families knows IPv4 wrapped into IPv6. */
static void wrap(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	uint8_t v4[4];

	if (addr->ss_family != AF_INET || !addr_v4(addr, v4))
		return;
	in6.sin6_addr.s6_addr[10] = in6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(in6.sin6_addr.s6_addr + 12, v4, 4);
	in6.sin6_port = htons(addr_port(addr));
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &in6, sizeof(in6));
}

static void unsent(struct flow *f, int err)
{
	struct outlet *o = flow_owner(f);

	if (!is_refusal(o, err))
		return;
	o->refusal = err;
	loop_after(engine_of(o)->loop, &o->refused);
}

static void refused(struct task *t)
{
	struct outlet *o = container_of(t, struct outlet, refused);

	refuse(o, end_of(o->refusal));
}

static void send_here(struct outlet *o, const uint8_t *payload, size_t len,
		      bool whole)
{
	struct iovec all = { (void *)(uintptr_t)payload, len };

	if (!whole && goes_in_fragments(o, len))
		narrow(o->flow, false);
	flow_put_whole(o->flow, whole);
	flow_put(o->flow, o->watch.fd, NULL, &all, 1);
}

static void send_to(struct outlet *o, const struct sockaddr_storage *addr,
		    const uint8_t *payload, size_t len)
{
	struct iovec whole = { (void *)(uintptr_t)payload, len };
	struct sockaddr_storage to = *addr;

	if (o->family == AF_INET6)
		wrap(&to);
	flow_put(o->flow, o->watch.fd, &to, &whole, 1);
}

/* --- sockets --- */

static int watch_socket(struct outlet *o, int fd)
{
	struct connector *c = o->all->connector;
	int err;

	if (fd < 0)
		return fd;
	err = loop_watch(engine_of(o)->loop, &o->watch, fd, EPOLLIN);
	if (err) {
		close(fd);
		return err;
	}
	connector_counts(c, 1);
	flow_took_socket(o->flow);
	return 0;
}

/* To any: for both families where there is IPv6. 0 or -errno. */
static int open_wide(struct outlet *o)
{
	int fd = connector_udp(o->all->connector, AF_INET6);

	o->family = fd == -EAFNOSUPPORT ? AF_INET : AF_INET6;
	if (o->family == AF_INET)
		fd = connector_udp(o->all->connector, AF_INET);
	return watch_socket(o, fd);
}

static int open_to(struct outlet *o, const struct sockaddr_storage *addr)
{
	int fd, mtu;

	o->family = addr->ss_family;
	fd = sock_connect(connector_udp(o->all->connector, addr->ss_family),
			  addr);
	mtu = path_mtu(fd);
	o->mtu = mtu > 0 ? (unsigned int)mtu : UINT_MAX;
	return watch_socket(o, fd);
}

static void answer(struct outlet *o, int err)
{
	if (!err)
		flow_answer(o->flow);
	else
		refuse(o, sock_is_shortage(err) ? CONN_END_LIMIT :
						  CONN_END_UNREACHABLE);
}

/* --- names become addresses --- */

/* The first that may be reached, in the order in which they are best tried. */
static bool choose(struct known *k, const struct answer *answer)
{
	unsigned int i;

	for (i = 0; i < answer->count; i++) {
		k->addr = answer->addr[i];
		addr_unmap(&k->addr);
		addr_set_port(&k->addr, k->name.port);
		if (k->outlet->family == AF_INET &&
		    k->addr.ss_family != AF_INET)
			continue;
		if (may_pass(k->outlet, &k->addr, true))
			return true;
	}
	return false;
}

static void send_waiting(struct known *k)
{
	struct outlet *o = k->outlet;
	struct datagram_item *item;

	while ((item = datagrams_take(&k->waiting))) {
		struct waiting *h = container_of(item, struct waiting, item);

		account(o, -(int64_t)datagram_memory(item));
		if (!k->has_address)
			flow_lost(o->flow, FLOW_UNSENT);
		else if (o->connected)
			send_here(o, h->payload, item->size, false);
		else
			send_to(o, &k->addr, h->payload, item->size);
		free(h);
	}
}

static void found(void *owner, const struct answer *said)
{
	struct known *k = owner;
	struct outlet *o = k->outlet;
	int err;

	k->finding = NULL;
	k->has_address = !said->error && choose(k, said);
	k->until = loop_now(engine_of(o)->loop) + NS_PER_SEC *
		   (k->has_address ? OUTLET_KNOWN_S : OUTLET_UNKNOWN_S);
	if (o->connected && !k->has_address) {
		refuse(o, said->error ? CONN_END_NO_NAME : CONN_END_DENIED);
		return;
	}
	if (o->connected) {
		err = open_to(o, &k->addr);
		answer(o, -err);
		if (err)
			return;
	}
	send_waiting(k);
}

static struct known *find_known(struct outlet *o, const struct destination *to)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &o->names) {
		struct known *k = list_entry(pos, struct known, member);

		if (k->name.len == to->len && k->name.port == to->port &&
		    !memcmp(k->name.bytes, to->bytes, to->len))
			return k;
	}
	return NULL;
}

static struct known *learn(struct outlet *o, const struct destination *to)
{
	struct known *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	if (o->nnames == OUTLET_NAMES)
		forget(list_first(&o->names, struct known, member));
	k->outlet = o;
	k->name = destination_copy(to);	/* a connection's is no whole one */
	datagrams_init(&k->waiting);
	list_add_tail(&o->names, &k->member);
	o->nnames++;
	flow_charge(o->flow, sizeof(*k));
	return k;
}

static void look_up(struct known *k)
{
	k->has_address = false;
	k->finding = finding_begin(&k->outlet->all->findings,
				   flow_conn(k->outlet->flow),
				   (const char *)k->name.bytes, found, k);
}

static void let_wait(struct known *k, const uint8_t *payload, size_t len)
{
	struct outlet *o = k->outlet;
	struct waiting *h = o->all->waiting < OUTLETS_WAITING ?
		malloc(sizeof(*h) + len) : NULL;
	struct datagram_item *oldest;

	if (!h) {
		flow_lost(o->flow, FLOW_UNSENT);
		return;
	}
	h->item.size = len;
	memcpy(h->payload, payload, len);
	account(o, (int64_t)datagram_memory(&h->item));
	oldest = datagrams_put(&k->waiting, &h->item, 0);
	if (oldest) {
		flow_lost(o->flow, FLOW_UNSENT);
		drop_waiting(k, oldest);
	}
}

static void send_to_name(struct outlet *o, const struct destination *to,
			 const uint8_t *payload, size_t len)
{
	struct known *k = find_known(o, to);

	if (!k)
		k = learn(o, to);
	if (k && !k->finding && loop_now(engine_of(o)->loop) >= k->until)
		look_up(k);
	if (k && k->finding)
		let_wait(k, payload, len);
	else if (k && k->has_address && may_pass(o, &k->addr, true))
		send_to(o, &k->addr, payload, len);
	else
		flow_lost(o->flow, FLOW_UNSENT);
}

/* --- from LP --- */

static void send_to_any(struct outlet *o, const struct destination *at,
			const uint8_t *payload, size_t len)
{
	struct sockaddr_storage to;

	if (at->kind == DESTINATION_NAME) {
		send_to_name(o, at, payload, len);
		return;
	}
	to = destination_address(at);
	if (may_pass(o, &to, true))
		send_to(o, &to, payload, len);
	else
		flow_lost(o->flow, FLOW_DENIED);
}

static void came(struct flow *f, const struct destination *at,
		 const uint8_t *payload, size_t len)
{
	struct outlet *o = flow_owner(f);

	if (!o->connected)
		send_to_any(o, at, payload, len);
	else if (o->watch.fd >= 0)
		send_here(o, payload, len, flow_is_whole(f, at));
	else
		let_wait(list_first(&o->names, struct known, member), payload,
			 len);
}

static const struct flow_ops flow_ops = {
	.came = came, .ended = ended, .unsent = unsent, .narrow = narrow,
};

/* --- from beginning to end --- */

static void open_by_address(struct outlet *o, const struct destination *to)
{
	struct sockaddr_storage addr = destination_address(to);

	if (may_pass(o, &addr, true))
		answer(o, -open_to(o, &addr));
	else
		refuse(o, CONN_END_DENIED);
}

static void open_by_name(struct outlet *o, const struct destination *to)
{
	struct known *k = learn(o, to);

	if (k)
		look_up(k);
	if (!k || !k->finding)
		refuse(o, CONN_END_LIMIT);
}

void outlet_open(struct outlets *all, struct conn *c)
{
	struct outlet *o = connector_takes_flow(all->connector, c) ?
		calloc(1, sizeof(*o)) : NULL;
	const struct destination *to = c->dst;

	if (!o) {
		conn_reset(c, CONN_END_LIMIT);
		return;
	}
	o->all = all;
	o->watch.fd = -1;
	o->watch.ready = readable;
	o->connected = to->kind != DESTINATION_NONE;
	list_init(&o->names);
	loop_task_init(&o->refused, refused);
	loop_task_init(&o->narrowed, narrowed);
	o->flow = flow_take(c, &flow_ops, o);
	if (to->kind == DESTINATION_NONE)
		answer(o, -open_wide(o));
	else if (to->kind == DESTINATION_NAME)
		open_by_name(o, to);
	else
		open_by_address(o, to);
}

void outlets_init(struct outlets *all, struct connector *connector)
{
	memset(all, 0, sizeof(*all));
	all->connector = connector;
	findings_init(&all->findings, connector);
}

void outlets_fini(struct outlets *all)
{
	findings_fini(&all->findings);
}
