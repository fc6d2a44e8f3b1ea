// SPDX-License-Identifier: GPL-2.0
/*
 * tm3.ko: its parameters, its beginning and its end. See tm3.h.
 */
#include <linux/err.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "tm3.h"

unsigned int tm3_net_id;

/* Of insmod, and true for that moment: /proc/net/tm3 says what is. */
static struct tm3_words words;

module_param_named(remoteProxyIP, words.remote_proxy_ip, charp, 0);
MODULE_PARM_DESC(remoteProxyIP, "IPv4 address of the remote proxy; connections to its ports 6000 and 6010 are never redirected");
module_param_named(fwdInterface, words.fwd_interface, charp, 0);
MODULE_PARM_DESC(fwdInterface, "interface whose outgoing connections are redirected");
module_param_named(portList, words.port_list, charp, 0);
MODULE_PARM_DESC(portList, "server ports that are redirected: 80,443,8000-8010 or all");
module_param_named(localPort, words.local_port, charp, 0);
MODULE_PARM_DESC(localPort, "port of lp on 127.0.0.1 (default: 6003)");

struct tm3_net *tm3_net(const struct net *net)
{
	return net_generic(net, tm3_net_id);
}

static int __net_init begin(struct net *net)
{
	mutex_init(&tm3_net(net)->lock);
	tm3_redirected_begin(net);
	return tm3_proc_init(net);
}

/* First nobody configures it any more and nothing new is redirected ... */
static void __net_exit stop(struct net *net)
{
	tm3_proc_fini(net);
	tm3_redirect_off(net);
}

/* ... then, a grace period later, what is redirected ends. */
static void __net_exit end(struct list_head *nets)
{
	struct net *net;

	list_for_each_entry(net, nets, exit_list)
		tm3_redirect_end(net);
	/* The hook may still run on another processor; its memory goes next. */
	synchronize_rcu();
}

static struct pernet_operations tm3_net_ops = {
	.init = begin,
	.pre_exit = stop,
	.exit_batch = end,
	.id = &tm3_net_id,
	.size = sizeof(struct tm3_net),
};

/* Without parameters the module waits for /proc/net/tm3 to be written. */
static int __init configure(struct net *net)
{
	struct tm3_config *config;
	int err;

	if (!words.remote_proxy_ip && !words.fwd_interface &&
	    !words.port_list && !words.local_port)
		return 0;
	config = tm3_config_new(net, &words);
	if (IS_ERR(config))
		return PTR_ERR(config);
	err = tm3_redirect_on(net, config);
	if (err)
		kvfree(config);
	return err;
}

static void leave(void)
{
	tm3_redirect_leave();
	unregister_pernet_subsys(&tm3_net_ops);
	tm3_redirected_fini();
}

static int __init tm3_init(void)
{
	int err = tm3_redirected_init();

	if (err)
		return err;
	err = register_pernet_subsys(&tm3_net_ops);
	if (err) {
		tm3_redirected_fini();
		return err;
	}
	err = configure(current->nsproxy->net_ns);
	if (err)
		leave();
	return err;
}

static void __exit tm3_exit(void)
{
	leave();
}

module_init(tm3_init);
module_exit(tm3_exit);

MODULE_DESCRIPTION("Redirects outgoing TCP connections to the local proxy of TM3");
MODULE_LICENSE("GPL");
