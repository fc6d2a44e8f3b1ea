// SPDX-License-Identifier: GPL-2.0
/*
 * The connections that were redirected, remembered apart from connection
 * tracking, which may forget them: `conntrack -F`, or an entry that times out.
 *
 * Nothing translates such a connection any more. A program that sends learns
 * it from the server, which resets what it does not know; one that only listens
 * would wait for ever, for no packet of lp's finds its socket. So each program
 * is remembered when its SYN is redirected, and every few seconds it is looked
 * at:
 *
 *    its socket is gone           forgotten here as well
 *    it is still asking (SYN)     left alone: a SYN is redirected once more
 *    its connection is tracked    left alone
 *    it is not, and the program
 *    waits for lp                 its socket is aborted
 *
 * At most MOST programs of a namespace are remembered. One that comes when that
 * many are, or when there is no memory, is redirected all the same, but nobody
 * looks after it.
 *
 * A list, changed under its lock: the hook adds to it, in softirq or not. The
 * work takes all of it away while it looks, since aborting a socket sleeps.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/container_of.h>
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sock_diag.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/netfilter/nf_conntrack_core.h>
#include <net/netfilter/nf_conntrack_zones.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <net/tcp_states.h>

#include "compat.h"
#include "tm3.h"

/*
 * Soon for somebody who waits, and seldom enough: a look costs two look-ups for
 * each connection. It is also how long the memory of one that has ended stays.
 */
#define LOOK_EVERY (5 * HZ)

/* As many as one address has ports; 96 bytes each. */
#define MOST 65536

struct program {
	struct list_head list;
	struct nf_conntrack_tuple tuple;	/* from it to its server */
	struct nf_conntrack_zone zone;
	u32 cookie[2];	/* its socket, and no later one of these addresses */
};

/*
 * Not the system's: a program may keep its socket locked for long, from memory
 * that is a file of a file system that hangs.
 */
static struct workqueue_struct *lookers;

/* Raw sockets send SYNs as well; nobody waits there for an answer of TCP. */
static bool is_tcp(const struct sock *sk)
{
	return sk && sk_fullsock(sk) && sk->sk_type == SOCK_STREAM &&
	       sk->sk_protocol == IPPROTO_TCP;
}

static bool is_added(struct tm3_redirected *all, struct program *program)
{
	bool has_room;

	spin_lock_bh(&all->lock);
	has_room = all->count < MOST;
	if (has_room) {
		list_add_tail(&program->list, &all->programs);
		all->count++;
	}
	spin_unlock_bh(&all->lock);
	return has_room;
}

/* By the hook: it is being redirected, but not tracked yet. */
void tm3_redirected_add(struct net *net, struct sock *sk,
			const struct nf_conn *ct)
{
	struct tm3_net *tn = tm3_net(net);
	struct program *program;

	if (!is_tcp(sk))
		return;
	program = kmalloc(sizeof(*program),
			  GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!program)
		goto unwatched;
	program->tuple = ct->tuplehash[IP_CT_DIR_ORIGINAL].tuple;
	program->zone = *nf_ct_zone(ct);
	sock_diag_save_cookie(sk, program->cookie);
	if (!is_added(&tn->redirected, program))
		goto unwatched;
	/* Nothing happens where it is due already. */
	queue_delayed_work(lookers, &tn->redirected.look, LOOK_EVERY);
	return;
unwatched:
	kfree(program);
	atomic64_inc(&tn->counters[TM3_UNWATCHED]);
}

/* Held, for sock_gen_put(), or NULL: it is gone. */
static struct sock *find_socket(struct net *net, const struct program *program)
{
	const struct nf_conntrack_tuple *to = &program->tuple;
	struct sock *sk;

	rcu_read_lock();
	sk = tm3_find_connected(net, to->src.u3.ip, to->src.u.tcp.port,
				to->dst.u3.ip, to->dst.u.tcp.port);
	rcu_read_unlock();
	if (!sk || (sk_fullsock(sk) &&
		    !sock_diag_check_cookie(sk, program->cookie)))
		return sk;
	sock_gen_put(sk);
	return NULL;
}

enum tracked {
	TRACKED,	/* and translated */
	UNTRACKED,
	ANOTHER,	/* the same socket, connected once more and directly */
};

static enum tracked find_tracked(struct net *net,
				 const struct program *program)
{
	struct nf_conntrack_tuple_hash *found =
		nf_conntrack_find_get(net, &program->zone, &program->tuple);
	enum tracked tracked = TRACKED;
	struct nf_conn *ct;

	if (!found)
		return UNTRACKED;
	ct = nf_ct_tuplehash_to_ctrack(found);
	if (!test_bit(IPS_DST_NAT_BIT, &ct->status)) {
		/*
		 * Was it tracked from its SYN on? If not, it is ours: the
		 * program has sent something since it was forgotten.
		 */
		if (ct->proto.tcp.seen[IP_CT_DIR_ORIGINAL].flags &
		    IP_CT_TCP_FLAG_BE_LIBERAL)
			tracked = UNTRACKED;
		else
			tracked = ANOTHER;
	}
	nf_ct_put(ct);
	return tracked;
}

static void tell(struct net *net, struct sock *sk)
{
	tcp_abort(sk, ECONNABORTED);
	atomic64_inc(&tm3_net(net)->counters[TM3_FORGOTTEN]);
	pr_info_once("connection tracking has forgotten connections that were redirected: their programs are told\n");
}

/* Is it still to be remembered? The last look waits where others do not. */
static bool look_at(struct net *net, const struct program *program,
		    bool is_last)
{
	struct sock *sk = find_socket(net, program);
	enum tracked tracked;
	bool stays = true;

	if (!sk)
		return false;
	/* Asked first: until it has had an answer it may not be tracked yet. */
	if (inet_sk_state_load(sk) == TCP_SYN_SENT)
		goto put;
	tracked = find_tracked(net, program);
	if (tracked == TRACKED)
		goto put;
	/* It is inside send(), say, which may take long: next time. */
	if (tracked == UNTRACKED && !is_last && sk_fullsock(sk) &&
	    sock_owned_by_user_nocheck(sk))
		goto put;
	if (tracked == UNTRACKED && tm3_is_waiting(sk))
		tell(net, sk);
	stays = false;
put:
	sock_gen_put(sk);
	return stays;
}

static void forget(struct list_head *programs)
{
	struct program *program, *next;

	list_for_each_entry_safe(program, next, programs, list)
		kfree(program);
}

/* Only ever one at a time in a namespace. */
static void look_at_all(struct tm3_redirected *all, bool is_last)
{
	struct program *program, *next;
	unsigned int gone = 0;
	LIST_HEAD(programs);
	LIST_HEAD(ended);

	spin_lock_bh(&all->lock);
	list_splice_init(&all->programs, &programs);
	spin_unlock_bh(&all->lock);

	list_for_each_entry_safe(program, next, &programs, list) {
		if (!look_at(all->net, program, is_last)) {
			list_move(&program->list, &ended);
			gone++;
		}
		cond_resched();
	}

	spin_lock_bh(&all->lock);
	list_splice(&programs, &all->programs);
	all->count -= gone;
	spin_unlock_bh(&all->lock);
	forget(&ended);
}

static void look(struct work_struct *work)
{
	struct tm3_redirected *all = container_of(to_delayed_work(work),
						  struct tm3_redirected, look);

	look_at_all(all, false);
	/* Who adds one later has it look as well. */
	if (!list_empty_careful(&all->programs))
		queue_delayed_work(lookers, &all->look, LOOK_EVERY);
}

void tm3_redirected_begin(struct net *net)
{
	struct tm3_redirected *all = &tm3_net(net)->redirected;

	spin_lock_init(&all->lock);
	INIT_LIST_HEAD(&all->programs);
	INIT_DELAYED_WORK(&all->look, look);
	all->net = net;
}

/*
 * None comes any more, and what was tracked has been cut. A last look, for the
 * sake of those who were forgotten and not told yet.
 */
void tm3_redirected_end(struct net *net)
{
	struct tm3_redirected *all = &tm3_net(net)->redirected;

	cancel_delayed_work_sync(&all->look);
	look_at_all(all, true);
	forget(&all->programs);
	INIT_LIST_HEAD(&all->programs);
	all->count = 0;
}

int tm3_redirected_init(void)
{
	lookers = alloc_workqueue("tm3", WQ_UNBOUND, 0);
	return lookers ? 0 : -ENOMEM;
}

void tm3_redirected_fini(void)
{
	destroy_workqueue(lookers);
}
