// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/net/tm3, in each network namespace its own.
 *
 * Read, it shows the configuration (or "off") and the counters. Written, it
 * takes the module's parameters in one line, or "off".
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "tm3.h"

#define NAME "tm3"

static const char * const names[TM3_COUNTERS] = {
	[TM3_REDIRECTED] = "redirected",
	[TM3_REFUSED] = "refused",
	[TM3_PIPES] = "pipes",
	[TM3_BOUND] = "bound",
	[TM3_DROPPED] = "dropped",
	[TM3_ABORTED] = "aborted",
	[TM3_FORGOTTEN] = "forgotten",
	[TM3_UNWATCHED] = "unwatched",
};

static int show(struct seq_file *seq, void *unused)
{
	struct tm3_net *tn = tm3_net(seq_file_single_net(seq));
	const struct tm3_config *config;
	int i;

	rcu_read_lock();
	config = rcu_dereference(tn->config);
	if (config)
		tm3_config_show(seq, config);
	else
		seq_puts(seq, "off\n");
	rcu_read_unlock();
	for (i = 0; i < TM3_COUNTERS; i++)
		seq_printf(seq, "%s %lld\n", names[i],
			   atomic64_read(&tn->counters[i]));
	return 0;
}

static int configure(struct net *net, char *text)
{
	struct tm3_config *config;
	struct tm3_words words;
	int err = tm3_words_split(&words, text);

	if (err)
		return err;
	config = tm3_config_new(net, &words);
	if (IS_ERR(config))
		return PTR_ERR(config);
	err = tm3_redirect_on(net, config);
	if (err)
		kvfree(config);
	return err;
}

/* One write, one configuration; the text is a copy of ours. */
static int written(struct file *file, char *text, size_t len)
{
	struct net *net = seq_file_single_net(file->private_data);

	if (!file_ns_capable(file, net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	if (strlen(text) != len)
		return -EINVAL;
	if (sysfs_streq(text, "off")) {
		tm3_redirect_off(net);
		return 0;
	}
	return configure(net, text);
}

/*
 * Anybody may open it for writing: written() asks who did. Its mode could not
 * say it, for the owner of a namespace may not have an id yet when that begins.
 */
int tm3_proc_init(struct net *net)
{
	return proc_create_net_single_write(NAME, 0666, net->proc_net, show,
					    written, NULL) ? 0 : -ENOMEM;
}

void tm3_proc_fini(struct net *net)
{
	remove_proc_entry(NAME, net->proc_net);
}
