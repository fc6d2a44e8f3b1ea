// SPDX-License-Identifier: GPL-2.0
/*
 * Ends connections that can no longer be translated.
 *
 * Without translation a redirected program and lp no longer hear each other:
 * what the program sends would go to the server, which knows nothing of it, and
 * a program that only listens would wait for ever. So the sockets of these
 * programs are aborted while translation still works: the program has an error
 * at once, and lp is sent the reset.
 *
 * A program that has closed its socket waits for nothing, but its last segment
 * may be lost and yet to be sent again, and lp would not hear of that end. Then
 * lp's socket is aborted as well, as if by that program's reset.
 */
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/kernel.h>
#include <linux/rcupdate.h>
#include <net/net_namespace.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <net/tcp_states.h>

#include "compat.h"
#include "tm3.h"

/* How many sockets are held at once; more need one more look at the table. */
#define BATCH 64

/* Which of a connection's two ends, and what it is told. */
struct side {
	struct sock *(*find)(struct net *net, const struct nf_conn *ct);
	bool (*is_wanted)(const struct sock *sk);
	int err;
	bool is_counted;
};

struct batch {
	struct net *net;
	const struct side *side;
	__be16 local_port;
	unsigned int count;
	struct sock *socks[BATCH];
};

static bool is_redirected(const struct nf_conn *ct, __be16 local_port)
{
	const struct nf_conntrack_tuple *reply =
		&ct->tuplehash[IP_CT_DIR_REPLY].tuple;

	return nf_ct_l3num(ct) == NFPROTO_IPV4 &&
	       nf_ct_protonum(ct) == IPPROTO_TCP &&
	       test_bit(IPS_DST_NAT_BIT, &ct->status) &&
	       reply->src.u3.ip == htonl(INADDR_LOOPBACK) &&
	       reply->src.u.tcp.port == local_port;
}

/* Somebody has it open and could wait for it. */
static bool is_in_use(const struct sock *sk)
{
	return sk_fullsock(sk) && !sock_flag(sk, SOCK_DEAD);
}

/* It has not heard of the other side's end, and somebody waits for that. */
bool tm3_is_waiting(const struct sock *sk)
{
	const int before_its_end = TCPF_ESTABLISHED | TCPF_FIN_WAIT1 |
				   TCPF_FIN_WAIT2;

	return is_in_use(sk) &&
	       (1 << inet_sk_state_load(sk)) & before_its_end;
}

static struct sock *find_program(struct net *net, const struct nf_conn *ct)
{
	const struct nf_conntrack_tuple *to =
		&ct->tuplehash[IP_CT_DIR_ORIGINAL].tuple;

	return tm3_find_connected(net, to->src.u3.ip, to->src.u.tcp.port,
				  to->dst.u3.ip, to->dst.u.tcp.port);
}

static struct sock *find_lp(struct net *net, const struct nf_conn *ct)
{
	const struct nf_conntrack_tuple *from =
		&ct->tuplehash[IP_CT_DIR_REPLY].tuple;

	return tm3_find_connected(net, from->src.u3.ip, from->src.u.tcp.port,
				  from->dst.u3.ip, from->dst.u.tcp.port);
}

static const struct side programs = {
	.find = find_program,
	.is_wanted = is_in_use,
	.err = ECONNABORTED,
	.is_counted = true,
};

static const struct side lps = {
	.find = find_lp,
	.is_wanted = tm3_is_waiting,
	.err = ECONNRESET,
};

/* Called under a spin lock, where a socket cannot be aborted: gathers. */
static int gather(struct nf_conn *ct, void *data)
{
	struct batch *batch = data;
	struct sock *sk;

	if (batch->count == BATCH || !is_redirected(ct, batch->local_port))
		return 0;
	rcu_read_lock();
	sk = batch->side->find(batch->net, ct);
	rcu_read_unlock();
	if (!sk)
		return 0;
	if (batch->side->is_wanted(sk))
		batch->socks[batch->count++] = sk;
	else
		sock_gen_put(sk);
	return 0;
}

static int forget(struct nf_conn *ct, void *data)
{
	const __be16 *local_port = data;

	return is_redirected(ct, *local_port);
}

static void abort_all(struct batch *batch)
{
	struct tm3_net *tn = tm3_net(batch->net);
	unsigned int i;

	for (i = 0; i < batch->count; i++) {
		tcp_abort(batch->socks[i], batch->side->err);
		sock_put(batch->socks[i]);
		if (batch->side->is_counted)
			atomic64_inc(&tn->counters[TM3_ABORTED]);
	}
}

static void cut_side(struct net *net, __be16 local_port,
		     const struct side *side)
{
	struct batch batch = {
		.net = net, .local_port = local_port, .side = side,
	};
	struct nf_ct_iter_data iter = { .net = net, .data = &batch };

	/* An aborted socket is found no more, so this comes to an end. */
	do {
		batch.count = 0;
		nf_ct_iterate_cleanup_net(gather, &iter);
		abort_all(&batch);
	} while (batch.count == BATCH);
}

/* All connections redirected to that port; there come no new ones. */
void tm3_cut(struct net *net, __be16 local_port)
{
	struct nf_ct_iter_data iter = { .net = net, .data = &local_port };

	cut_side(net, local_port, &programs);
	cut_side(net, local_port, &lps);
	nf_ct_iterate_cleanup_net(forget, &iter);
}
