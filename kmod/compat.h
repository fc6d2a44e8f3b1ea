/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that this module is built for, from 6.1 on.
 */
#ifndef TM3_COMPAT_H
#define TM3_COMPAT_H

#include <linux/version.h>
#include <net/inet_hashtables.h>
#include <net/net_namespace.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "tm3.ko needs Linux 6.1 or later"
#endif

/*
 * Sockets of TCP by their addresses, both under rcu_read_lock(): one that
 * listens on loopback (not held), and one that has a connection (held, for
 * sock_gen_put()). Since 6.18 the table follows from the namespace.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)

static inline struct sock *tm3_find_listener(struct net *net, __be32 addr,
					     __be16 port)
{
	return __inet_lookup_listener(net, net->ipv4.tcp_death_row.hashinfo,
				      NULL, 0, addr, 0, addr, ntohs(port),
				      net->loopback_dev->ifindex, 0);
}

static inline struct sock *tm3_find_connected(struct net *net,
					      __be32 addr, __be16 port,
					      __be32 peer, __be16 peer_port)
{
	return __inet_lookup_established(net,
					 net->ipv4.tcp_death_row.hashinfo,
					 peer, peer_port, addr, ntohs(port),
					 0, 0);
}

#else

static inline struct sock *tm3_find_listener(struct net *net, __be32 addr,
					     __be16 port)
{
	return __inet_lookup_listener(net, NULL, 0, addr, 0, addr, ntohs(port),
				      net->loopback_dev->ifindex, 0);
}

static inline struct sock *tm3_find_connected(struct net *net,
					      __be32 addr, __be16 port,
					      __be32 peer, __be16 peer_port)
{
	return __inet_lookup_established(net, peer, peer_port, addr,
					 ntohs(port), 0, 0);
}

#endif
#endif
