/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tm3.ko: outgoing TCP connections, redirected to a local proxy.
 *
 *    program --connect()--> LOCAL_OUT --(this module)--> 127.0.0.1:6003, lp
 *
 * In each network namespace that is configured a hook sits in the chain of
 * network address translation where packets leave local programs. It gives the
 * first packet of a chosen connection a new destination: lp's port on loopback.
 * Connection tracking does the rest, for that packet and for all that follow,
 * and lp asks it with getsockopt(SO_ORIGINAL_DST) where the program wanted to
 * go.
 *
 * A namespace is in one of three states:
 *
 *    unused     nothing is registered, nothing is tracked on our account
 *    on         hooked, with a configuration
 *    off again  hooked, without: nothing new is redirected, but what was goes
 *               on being translated until it ends
 *
 * Only the end of the module or of the namespace takes the hook away. What is
 * still redirected then could no longer be translated, and its programs would
 * wait for ever: these connections are aborted, see cut.c. So are those that
 * connection tracking forgets before their end, see redirected.c.
 */
#ifndef TM3_H
#define TM3_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/if.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct net;
struct nf_conn;
struct seq_file;
struct sock;

#define TM3_PORTS 65536

/* What a user wrote, word by word; NULL where nothing was written. */
struct tm3_words {
	char *remote_proxy_ip;
	char *fwd_interface;
	char *port_list;
	char *local_port;
};

/* What it means. Never changed once it is in use, but replaced. */
struct tm3_config {
	__be32 remote_proxy;
	__be16 local_port;
	char interface[IFNAMSIZ];
	DECLARE_BITMAP(ports, TM3_PORTS);
};

/* Connections, by what became of them. */
enum tm3_counter {
	TM3_REDIRECTED,		/* handed to lp */
	TM3_REFUSED,		/* would have been, but nobody listens there */
	TM3_PIPES,		/* lp's own, let through */
	TM3_BOUND,		/* of a socket bound to a device, let through */
	TM3_DROPPED,		/* could not be translated */
	TM3_ABORTED,		/* redirected before and ended by us */
	TM3_FORGOTTEN,		/* the same, for they were tracked no more */
	TM3_UNWATCHED,		/* redirected, and not remembered */
	TM3_COUNTERS
};

/* The programs whose connections were redirected, see redirected.c. */
struct tm3_redirected {
	spinlock_t lock;	/* of the next two */
	struct list_head programs;
	unsigned int count;	/* also of those that are being looked at */
	struct delayed_work look;	/* due while there are any */
	struct net *net;
};

struct tm3_net {
	struct mutex lock;	/* one change at a time */
	struct tm3_config __rcu *config;	/* NULL: off */
	__be16 local_port;	/* where open connections were redirected to */
	bool hooked;
	struct tm3_redirected redirected;
	atomic64_t counters[TM3_COUNTERS];
};

extern unsigned int tm3_net_id;
struct tm3_net *tm3_net(const struct net *net);

/* config.c */
struct tm3_config *tm3_config_new(struct net *net,
				  const struct tm3_words *words);
int tm3_words_split(struct tm3_words *words, char *text);
void tm3_config_show(struct seq_file *seq, const struct tm3_config *config);

/* redirect.c */
int tm3_redirect_on(struct net *net, struct tm3_config *config);
void tm3_redirect_off(struct net *net);
void tm3_redirect_end(struct net *net);
void tm3_redirect_leave(void);

/* redirected.c */
int tm3_redirected_init(void);
void tm3_redirected_fini(void);
void tm3_redirected_begin(struct net *net);
void tm3_redirected_add(struct net *net, struct sock *sk,
			const struct nf_conn *ct);
void tm3_redirected_end(struct net *net);

/* cut.c */
bool tm3_is_waiting(const struct sock *sk);
void tm3_cut(struct net *net, __be16 local_port);

/* proc.c */
int tm3_proc_init(struct net *net);
void tm3_proc_fini(struct net *net);

#endif
