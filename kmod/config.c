// SPDX-License-Identifier: GPL-2.0
/*
 * The parameters: from words to a configuration, and back.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/netdevice.h>
#include <linux/ratelimit.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "tm3.h"

#define DEFAULT_LOCAL_PORT "6003"

/* A user's text may be long and hold anything: shown are its first bytes. */
#define SHOWN 48

static int refuse(int err, const char *name, const char *text, const char *why)
{
	/* Whoever owns a namespace may write as often as he likes. */
	static DEFINE_RATELIMIT_STATE(limit, 5 * HZ, 50);

	if (__ratelimit(&limit))
		pr_err("%s=%*pE %s\n", name, (int)strnlen(text, SHOWN), text,
		       why);
	return err;
}

static int parse_proxy(struct tm3_config *config, const char *text)
{
	const char *end;

	if (!in4_pton(text, -1, (u8 *)&config->remote_proxy, -1, &end) ||
	    *end || ipv4_is_zeronet(config->remote_proxy) ||
	    ipv4_is_multicast(config->remote_proxy) ||
	    ipv4_is_lbcast(config->remote_proxy))
		return refuse(-EINVAL, "remoteProxyIP", text,
			      "is not the IPv4 address of a host");
	return 0;
}

/* By any of its names; kept is the one that packets will be compared with. */
static int parse_interface(struct net *net, struct tm3_config *config,
			   const char *name)
{
	const struct net_device *dev;
	int err = 0;

	if (!*name || strlen(name) >= ALTIFNAMSIZ || strchr(name, '/'))
		return refuse(-EINVAL, "fwdInterface", name,
			      "is not the name of an interface");
	rcu_read_lock();
	dev = dev_get_by_name_rcu(net, name);
	if (!dev)
		err = refuse(-ENODEV, "fwdInterface", name,
			     "is not there, in this network namespace");
	else if (dev->flags & IFF_LOOPBACK)
		err = refuse(-EINVAL, "fwdInterface", name,
			     "is loopback, whose traffic is never redirected");
	else if (!(net->loopback_dev->flags & IFF_UP))
		err = refuse(-ENETDOWN, "fwdInterface", name,
			     "has nowhere to redirect to: loopback is down");
	else
		strscpy(config->interface, dev->name,
			sizeof(config->interface));
	rcu_read_unlock();
	return err;
}

/* "80,443,8000-8010", or "all". Bit n of the map stands for port n. */
static int parse_ports(struct tm3_config *config, const char *list)
{
	if (!strcmp(list, "all")) {
		bitmap_set(config->ports, 1, TM3_PORTS - 1);
		return 0;
	}
	/* bitmap_parselist() knows more words than a user of ports should. */
	if (strspn(list, "0123456789,-") != strlen(list) ||
	    bitmap_parselist(list, config->ports, TM3_PORTS) ||
	    bitmap_empty(config->ports, TM3_PORTS) ||
	    test_bit(0, config->ports))
		return refuse(-EINVAL, "portList", list,
			      "is not a list of ports such as 80,443,8000-8010");
	return 0;
}

static int parse_local_port(struct tm3_config *config, const char *text)
{
	u16 port;

	/* kstrtou16() would take a sign and a newline. */
	if (strspn(text, "0123456789") != strlen(text) ||
	    kstrtou16(text, 10, &port) || !port)
		return refuse(-EINVAL, "localPort", text,
			      "is not a port from 1 to 65535");
	config->local_port = htons(port);
	return 0;
}

static int parse(struct net *net, struct tm3_config *config,
		 const struct tm3_words *words)
{
	return parse_proxy(config, words->remote_proxy_ip) ?:
	       parse_interface(net, config, words->fwd_interface) ?:
	       parse_ports(config, words->port_list) ?:
	       parse_local_port(config, words->local_port ?:
				DEFAULT_LOCAL_PORT);
}

/* What the words mean in this namespace, or an ERR_PTR(), said why. */
struct tm3_config *tm3_config_new(struct net *net,
				  const struct tm3_words *words)
{
	struct tm3_config *config;
	int err;

	if (!words->remote_proxy_ip || !words->fwd_interface ||
	    !words->port_list) {
		pr_err_ratelimited("remoteProxyIP, fwdInterface and portList are needed, all three\n");
		return ERR_PTR(-EINVAL);
	}
	config = kvzalloc(sizeof(*config), GFP_KERNEL_ACCOUNT);
	if (!config)
		return ERR_PTR(-ENOMEM);
	err = parse(net, config, words);
	if (err) {
		kvfree(config);
		return ERR_PTR(err);
	}
	return config;
}

static char **slot(struct tm3_words *words, const char *name)
{
	if (!strcmp(name, "remoteProxyIP"))
		return &words->remote_proxy_ip;
	if (!strcmp(name, "fwdInterface"))
		return &words->fwd_interface;
	if (!strcmp(name, "portList"))
		return &words->port_list;
	if (!strcmp(name, "localPort"))
		return &words->local_port;
	return NULL;
}

/* Takes "name=value name=value" apart; the words point into the text. */
int tm3_words_split(struct tm3_words *words, char *text)
{
	char *word, *name, **value;

	memset(words, 0, sizeof(*words));
	while ((word = strsep(&text, " \t\n"))) {
		if (!*word)
			continue;
		name = strsep(&word, "=");
		value = slot(words, name);
		if (!value || !word) {
			pr_err_ratelimited("%*pE: not a parameter and its value\n",
					   (int)strnlen(name, SHOWN), name);
			return -EINVAL;
		}
		if (*value)
			return refuse(-EINVAL, name, word, "comes twice");
		*value = word;
	}
	return 0;
}

/* In words that could be written back. */
void tm3_config_show(struct seq_file *seq, const struct tm3_config *config)
{
	seq_printf(seq, "remoteProxyIP=%pI4 fwdInterface=%s portList=%*pbl localPort=%u\n",
		   &config->remote_proxy, config->interface,
		   TM3_PORTS, config->ports, ntohs(config->local_port));
}
