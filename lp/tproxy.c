/* SPDX-License-Identifier: MIT */
#include "tproxy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/host.h"
#include "../mux/base/list.h"
#include "../mux/base/log.h"
#include "../mux/base/loop.h"
#include "../mux/base/plural.h"
#include "../mux/base/seldom.h"
#include "../mux/base/sock.h"
#include "../mux/base/udp_in.h"
#include "../mux/conn/address.h"
#include "../mux/session/flow.h"
#include "../mux/wire/wire.h"
#include "proxy.h"
#include "source.h"

_Static_assert(UDP_IN_SLOT >= (int)WIRE_PAYLOAD_MAX,
	       "a datagram that fits into a message is read whole");

enum { BUCKETS = 256 };

/* A socket that datagrams are brought to. */
struct door {
	struct tproxy *tproxy;
	struct watch watch;
	struct sockaddr_storage addr;
	bool whole;		/* those with Don't Fragment alone */
};

struct tproxy {
	struct proxy *proxy;
	struct door door[2];
	unsigned int ndoors;
	struct sources *sources;
	struct list talks;	/* who sent something last stands last */
	struct list bucket[BUCKETS];
	unsigned int count;
	/* Dropped: for want of a flow, not redirected, answers for want of a socket. */
	unsigned long homeless, strays, mute;
	/* Of a path that is too narrow programs were told so often, or could not be. */
	unsigned long told, untold;
	int64_t said_at;	/* one of these; 0 never */
};

/* Between an application and a destination. */
struct talk {
	struct tproxy *tproxy;
	struct list member;
	struct list bucket;
	struct sockaddr_storage from, to;
	size_t largest;		/* of the program's datagrams */
	struct source *source;	/* where answers leave; NULL before the first */
	struct flow *flow;
};

/* What the flow put was sent when this is called, so nobody needs the socket. */
static void forget(struct talk *talk)
{
	source_put(talk->source);
	list_del(&talk->member);
	list_del(&talk->bucket);
	talk->tproxy->count--;
	free(talk);
}

static void drop(struct talk *talk)
{
	flow_close(talk->flow);
	forget(talk);
}

/* --- to applications --- */

static const char *why_mute(int err)
{
	if (err == EPERM)
		return "it takes CAP_NET_RAW or CAP_NET_ADMIN";
	if (err == EACCES)
		return "a port below 1024 takes CAP_NET_BIND_SERVICE";
	if (err == EMFILE)
		return "--tproxy has its part of the descriptors (ulimit -n)";
	return strerror(err);
}

static void mute(struct talk *talk, int err)
{
	struct tproxy *t = talk->tproxy;
	char text[ADDR_TEXT];

	t->mute++;
	if (seldom(&t->said_at, t->proxy->loop))
		log_warn(t->proxy->log, "answers from %s are dropped, because lp cannot send from that address: %s",
			 addr_text(&talk->to, text), why_mute(err));
}

static void came(struct flow *f, const struct destination *at,
		 const uint8_t *payload, size_t len)
{
	struct iovec whole = { (void *)(uintptr_t)payload, len };
	struct talk *talk = flow_owner(f);

	(void)at;
	if (!talk->source)
		talk->source = source_get(talk->tproxy->sources, &talk->to);
	if (talk->source) {
		flow_put(f, source_fd(talk->source), &talk->from, &whole, 1);
		return;
	}
	mute(talk, errno);
	flow_lost(f, FLOW_UNSENT);
}

static void ended(struct flow *f)
{
	forget(flow_owner(f));
}

/* As a router before rp's path would, had the program no lp. */
static void told_mtu(struct flow *f, unsigned int mtu)
{
	struct talk *talk = flow_owner(f);
	struct tproxy *t = talk->tproxy;
	char text[ADDR_TEXT];
	int err = icmp_too_big(&t->proxy->icmp, &talk->from, &talk->to,
			       talk->largest, mtu);

	if (!err) {
		t->told++;
		return;
	}
	t->untold++;
	if (seldom(&t->said_at, t->proxy->loop))
		log_warn(t->proxy->log, "%s is not told that the path behind rp takes %u bytes in a packet: %s",
			 addr_text(&talk->from, text), mtu, strerror(-err));
}

static const struct flow_ops flow_ops = {
	.came = came, .ended = ended, .told_mtu = told_mtu,
};

/* --- from applications --- */

static const struct sockaddr_storage *address_of(const struct tproxy *t)
{
	return &t->door[0].addr;
}

static struct list *bucket_of(struct tproxy *t,
			      const struct sockaddr_storage *from,
			      const struct sockaddr_storage *to)
{
	return &t->bucket[(addr_hash(from) * 31 + addr_hash(to)) % BUCKETS];
}

static struct talk *find(struct tproxy *t, const struct sockaddr_storage *from,
			 const struct sockaddr_storage *to)
{
	struct list *bucket = bucket_of(t, from, to), *pos, *tmp;

	list_each(pos, tmp, bucket) {
		struct talk *talk = list_entry(pos, struct talk, bucket);

		if (addr_same(&talk->from, from) && addr_same(&talk->to, to))
			return talk;
	}
	return NULL;
}

void tproxy_make_room(struct proxy *p)
{
	struct tproxy *most = NULL;
	unsigned int i;

	for (i = 0; i < p->ways_in.ntproxies; i++) {
		if (!most || p->ways_in.tproxies[i]->count > most->count)
			most = p->ways_in.tproxies[i];
	}
	if (most && most->count)
		drop(list_first(&most->talks, struct talk, member));
}

static struct talk *add(struct tproxy *t, const struct sockaddr_storage *from,
			const struct sockaddr_storage *to)
{
	struct destination target = address_destination(to);
	struct talk *talk;

	talk = calloc(1, sizeof(*talk));
	if (!talk)
		return NULL;
	talk->flow = proxy_open_flow(t->proxy, &target, &flow_ops, talk);
	if (!talk->flow) {
		free(talk);
		return NULL;
	}
	talk->tproxy = t;
	talk->from = *from;
	talk->to = *to;
	list_add_tail(&t->talks, &talk->member);
	list_add_tail(bucket_of(t, from, to), &talk->bucket);
	t->count++;
	return talk;
}

/*
 * It was sent to lp itself, or is an answer of lp's that rules without an exception for it
 * brought back. Either would go round in circles. Where lp has answered nobody, it is no
 * answer of lp's: somebody forged a datagram to this program, ahead of the program's first.
 */
static bool is_stray(struct tproxy *t, const struct sockaddr_storage *from,
		     const struct sockaddr_storage *to)
{
	const struct talk *back = find(t, to, from);

	return to->ss_family != address_of(t)->ss_family || !addr_port(to) ||
	       (addr_port(to) == addr_port(address_of(t)) && host_owns(to)) ||
	       (back && back->source);
}

static void say_dropped(struct tproxy *t, const struct sockaddr_storage *from,
			const struct sockaddr_storage *to, const char *why)
{
	char text[2][ADDR_TEXT];

	if (seldom(&t->said_at, t->proxy->loop))
		log_warn(t->proxy->log, "datagrams from %s to %s are dropped: %s",
			 addr_text(from, text[0]), addr_text(to, text[1]), why);
}

/* Who has none yet. NULL: it was said why. */
static struct talk *begin(struct tproxy *t, const struct sockaddr_storage *from,
			  const struct sockaddr_storage *to)
{
	struct talk *talk;

	if (is_stray(t, from, to)) {
		t->strays++;
		say_dropped(t, from, to, "they were not redirected, or would go round in circles");
		return NULL;
	}
	talk = add(t, from, to);
	if (talk)
		return talk;
	t->homeless++;
	say_dropped(t, from, to, proxy_no_flows(t->proxy));
	return NULL;
}

static void datagram(void *arg, struct sockaddr_storage *from,
		     const struct sockaddr_storage *to, const uint8_t *payload,
		     size_t len)
{
	const struct door *door = arg;
	struct tproxy *t = door->tproxy;
	struct talk *talk = find(t, from, to);

	if (!talk)
		talk = begin(t, from, to);
	if (!talk)
		return;
	list_move_tail(&t->talks, &talk->member);
	if (len > talk->largest)
		talk->largest = len;
	flow_send(talk->flow, door->whole ? &flow_whole : NULL, payload, len);
}

static void readable(struct watch *w, uint32_t events)
{
	(void)events;
	udp_in_read_to(w->fd, datagram, container_of(w, struct door, watch));
}

/* --- from beginning to end --- */

static int open_door(struct tproxy *t, const struct sockaddr_storage *addr,
		     bool whole)
{
	struct door *door = &t->door[t->ndoors];
	int err, fd = sock_transparent_udp(addr, false);

	if (fd < 0)
		return fd;
	door->tproxy = t;
	door->watch.ready = readable;
	door->addr = *addr;
	door->whole = whole;
	err = udp_in_tell_to(fd, addr->ss_family);
	if (!err)
		err = loop_watch(t->proxy->loop, &door->watch, fd, EPOLLIN);
	if (err)
		close(fd);
	else
		t->ndoors++;
	return err;
}

/*
 * Which packets have Don't Fragment only nftables can tell apart, and it brings them to
 * 127.0.0.2. Who cannot be told by ICMP has them fragmented.
 */
static bool whole_ones_come_to(const struct tproxy *t,
			       const struct sockaddr_storage *addr,
			       struct sockaddr_storage *next)
{
	static const uint8_t first[] = { 127, 0, 0, 1 }, second[] = { 127, 0, 0, 2 };
	struct destination at = destination_ipv4(second, addr_port(addr));
	uint8_t v4[4];

	if (addr->ss_family != AF_INET || !addr_v4(addr, v4) ||
	    memcmp(v4, first, sizeof(v4)) ||
	    icmp_can(&t->proxy->icmp, AF_INET))
		return false;
	*next = destination_address(&at);
	return true;
}

static void say_failed(struct proxy *p, const struct sockaddr_storage *addr,
		       int err)
{
	char text[ADDR_TEXT];

	p->ways_in.listen_err = err;
	p->ways_in.listen_addr = *addr;
	if (err == -EPERM)
		log_error(p->log, "--tproxy takes CAP_NET_RAW or CAP_NET_ADMIN, which this process has not: start it as root");
	else if (err != -EADDRNOTAVAIL)	/* it is waited for */
		log_error(p->log, "cannot take datagrams at %s: %s; --tproxy chooses another address",
			  addr_text(addr, text), strerror(-err));
}

static void close_doors(struct tproxy *t)
{
	while (t->ndoors)
		loop_close(t->proxy->loop, &t->door[--t->ndoors].watch);
}

struct tproxy *tproxy_new(struct proxy *p, const struct sockaddr_storage *addr)
{
	struct tproxy *t = calloc(1, sizeof(*t));
	struct sources *sources = sources_new();
	struct sockaddr_storage next = *addr;
	int i, err = -ENOMEM;

	if (t && sources) {
		t->proxy = p;
		t->sources = sources;
		list_init(&t->talks);
		for (i = 0; i < BUCKETS; i++)
			list_init(&t->bucket[i]);
		err = open_door(t, addr, false);
		if (!err && whole_ones_come_to(t, addr, &next))
			err = open_door(t, &next, true);
		if (!err)
			return t;
		close_doors(t);
	}
	sources_free(sources);
	free(t);
	say_failed(p, &next, err);
	return NULL;
}

void tproxy_free(struct tproxy *t)
{
	while (!list_empty(&t->talks))
		drop(list_first(&t->talks, struct talk, member));
	close_doors(t);
	sources_free(t->sources);
	free(t);
}

void tproxy_announce(const struct tproxy *t)
{
	char text[ADDR_TEXT];
	int err;

	log_info(t->proxy->log, "redirected datagrams on %s",
		 addr_text(address_of(t), text));
	err = icmp_can(&t->proxy->icmp, address_of(t)->ss_family);
	if (err)
		log_info(t->proxy->log, "programs are not told how large a packet may be behind rp: that takes an ICMP socket: %s",
			 strerror(-err));
}

void tproxy_print(const struct tproxy *t, FILE *out)
{
	char text[ADDR_TEXT];

	if (t->count || t->homeless || t->strays || t->mute)
		fprintf(out, "UDP redirected to %s: %u flow%s, %u socket%s for answers; dropped: %lu for want of a flow, %lu not redirected, %lu answer%s for want of a socket\n",
			addr_text(address_of(t), text), t->count,
			plural(t->count), sources_count(t->sources),
			plural(sources_count(t->sources)), t->homeless,
			t->strays, t->mute, plural(t->mute));
	if (t->told || t->untold)
		fprintf(out, "programs told how large a packet may be behind rp: %lu time%s; %lu time%s that failed\n",
			t->told, plural(t->told), t->untold,
			plural(t->untold));
}
