// SPDX-License-Identifier: GPL-2.0
/*
 * The hook: which connections are redirected, and how.
 */
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/netfilter_ipv4.h>
#include <linux/rtnetlink.h>
#include <linux/rwsem.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/netfilter/nf_nat.h>
#include <net/sock.h>

#include "compat.h"
#include "tm3.h"

/* Where RP takes pipes: those of the baseline, and those with extensions. */
#define PIPE_PORT 6000
#define PIPE_PORT_EXTENDED 6010

/* The module goes: no namespace is configured any more. */
static bool is_leaving;

static void count(struct tm3_net *tn, enum tm3_counter which)
{
	atomic64_inc(&tn->counters[which]);
}

static bool is_pipe(const struct tm3_config *config, __be32 to, __be16 port)
{
	return to == config->remote_proxy &&
	       (port == htons(PIPE_PORT) || port == htons(PIPE_PORT_EXTENDED));
}

static bool is_bound(const struct sock *sk)
{
	return sk && sk_fullsock(sk) && READ_ONCE(sk->sk_bound_dev_if);
}

/*
 * Is this the first packet of a connection to one of the ports? Nothing but a
 * SYN will do: of a connection that is older than its tracking, the first
 * packet seen is any, and it must stay with its server.
 */
static bool is_wanted(const struct tm3_config *config, struct sk_buff *skb,
		      struct tcphdr *room, const struct tcphdr **tcp)
{
	if (ip_hdr(skb)->protocol != IPPROTO_TCP)
		return false;
	*tcp = skb_header_pointer(skb, ip_hdrlen(skb), sizeof(*room), room);
	return *tcp && (*tcp)->syn && !(*tcp)->ack &&
	       test_bit(ntohs((*tcp)->dest), config->ports);
}

static unsigned int hand_over(struct tm3_net *tn,
			      const struct tm3_config *config,
			      struct sk_buff *skb,
			      const struct nf_hook_state *state)
{
	const __be32 loopback = htonl(INADDR_LOOPBACK);
	const struct nf_nat_range2 lp = {
		.flags = NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED,
		.min_addr.ip = loopback,
		.max_addr.ip = loopback,
		.min_proto.tcp.port = config->local_port,
		.max_proto.tcp.port = config->local_port,
	};
	enum ip_conntrack_info info;
	struct nf_conn *ct = nf_ct_get(skb, &info);
	unsigned int verdict = nf_nat_setup_info(ct, &lp, NF_NAT_MANIP_DST);

	if (verdict != NF_ACCEPT) {
		count(tn, TM3_DROPPED);
	} else if (tm3_find_listener(state->net, loopback,
				     config->local_port)) {
		count(tn, TM3_REDIRECTED);
		tm3_redirected_add(state->net, state->sk, ct);
	} else {
		/* Loopback answers with a reset: refused, at once. */
		count(tn, TM3_REFUSED);
	}
	return verdict;
}

/*
 * Called once a connection, under rcu_read_lock(). Whoever leaves it alone says
 * so with NF_ACCEPT: it then keeps its destination as long as it lives.
 */
static unsigned int local_out(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state)
{
	struct tm3_net *tn = tm3_net(state->net);
	const struct tm3_config *config = rcu_dereference(tn->config);
	enum ip_conntrack_info info;
	const struct nf_conn *ct = nf_ct_get(skb, &info);
	const struct tcphdr *tcp;
	struct tcphdr room;

	/* Confirmed: older than any translation here, its SYN is sent again. */
	if (!config || nf_ct_is_confirmed(ct) ||
	    strcmp(state->out->name, config->interface) ||
	    !is_wanted(config, skb, &room, &tcp))
		return NF_ACCEPT;
	if (is_pipe(config, ip_hdr(skb)->daddr, tcp->dest)) {
		count(tn, TM3_PIPES);
		return NF_ACCEPT;
	}
	/* Loopback cannot be reached through a device: it would time out. */
	if (is_bound(state->sk)) {
		count(tn, TM3_BOUND);
		return NF_ACCEPT;
	}
	return hand_over(tn, config, skb, state);
}

static const struct nf_hook_ops hook = {
	.hook = local_out,
	.pf = NFPROTO_IPV4,
	.hooknum = NF_INET_LOCAL_OUT,
	.priority = NF_IP_PRI_NAT_DST,
};

static int attach(struct net *net)
{
	int err = nf_ct_netns_get(net, NFPROTO_IPV4);

	if (err)
		return err;
	err = nf_nat_ipv4_register_fn(net, &hook);
	if (err)
		nf_ct_netns_put(net, NFPROTO_IPV4);
	return err;
}

static void detach(struct net *net)
{
	nf_nat_ipv4_unregister_fn(net, &hook);
	nf_ct_netns_put(net, NFPROTO_IPV4);
}

static void replace(struct tm3_net *tn, struct tm3_config *config)
{
	config = rcu_replace_pointer(tn->config, config,
				     lockdep_is_held(&tn->lock));
	if (!config)
		return;
	/* The hook may still be at work by it. Who writes often waits often. */
	synchronize_net();
	kvfree(config);
}

/* From now on by this configuration, which is ours unless this fails. */
int tm3_redirect_on(struct net *net, struct tm3_config *config)
{
	struct tm3_net *tn = tm3_net(net);
	__be16 port = config->local_port;
	int err = 0;

	mutex_lock(&tn->lock);
	if (READ_ONCE(is_leaving)) {
		err = -EBUSY;
		goto unlock;
	}
	if (!tn->hooked) {
		err = attach(net);
		if (err)
			goto unlock;
		WRITE_ONCE(tn->hooked, true);
		tn->local_port = port;
	}
	replace(tn, config);
	if (tn->local_port != port) {
		/* lp has moved, and with the old one went its connections. */
		tm3_cut(net, tn->local_port);
		tn->local_port = port;
	}
unlock:
	mutex_unlock(&tn->lock);
	return err;
}

/* Nothing new is redirected; open connections go on. */
void tm3_redirect_off(struct net *net)
{
	struct tm3_net *tn = tm3_net(net);

	mutex_lock(&tn->lock);
	replace(tn, NULL);
	mutex_unlock(&tn->lock);
}

/*
 * After tm3_redirect_off() and a grace period, and nobody turns it on again: as
 * if never been there. It may wait long, so whoever writes meanwhile does not
 * wait for the lock.
 */
void tm3_redirect_end(struct net *net)
{
	struct tm3_net *tn = tm3_net(net);

	if (!tn->hooked)
		return;
	tm3_cut(net, tn->local_port);
	tm3_redirected_end(net);
	detach(net);
	WRITE_ONCE(tn->hooked, false);
}

/* Held, for put_net(), or NULL. One that is ending sees to itself. */
static struct net *get_hooked(void)
{
	struct net *net, *found = NULL;

	down_read(&net_rwsem);
	for_each_net(net) {
		if (READ_ONCE(tm3_net(net)->hooked))
			found = maybe_get_net(net);
		if (found)
			break;
	}
	up_read(&net_rwsem);
	return found;
}

/*
 * Ends the redirection of all namespaces, before the module unregisters. While
 * pernet operations are unregistered, no namespace begins or ends, and no
 * module that has such operations can be loaded. But aborting a socket waits
 * for the program that is inside a call on it, and this call may wait for such
 * a module: TCP_ULP loads tls.ko with the socket locked. Neither would end.
 */
void tm3_redirect_leave(void)
{
	struct net *net;

	WRITE_ONCE(is_leaving, true);
	while ((net = get_hooked())) {
		tm3_redirect_off(net);
		tm3_redirect_end(net);
		put_net(net);
	}
}
