// SPDX-License-Identifier: MIT
/*
 * One fault of each kind that the debug kernel's checks are there for, made on
 * purpose: a test of those who watch its log (vm/faults.py). Built and loaded
 * for nothing else.
 */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>

#define BYTES 96

static char *fault = "";
module_param(fault, charp, 0);
MODULE_PARM_DESC(fault, "which one");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spinning);
static void __rcu *guarded;

struct waiting {
	struct timer_list timer;
};

static void never(struct timer_list *timer)
{
}

static void use_after_free(void)
{
	char *memory = kzalloc(BYTES, GFP_KERNEL);

	kfree(memory);
	OPTIMIZER_HIDE_VAR(memory);
	if (memory)
		WRITE_ONCE(memory[8], 1);
}

static void out_of_bounds(void)
{
	char *memory = kzalloc(BYTES, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(memory);
	if (memory)
		WRITE_ONCE(memory[BYTES], 1);
	kfree(memory);
}

static void double_free(void)
{
	char *memory = kzalloc(BYTES, GFP_KERNEL);

	kfree(memory);
	OPTIMIZER_HIDE_VAR(memory);
	kfree(memory);
}

/* More than one: a word that is left on a stack may hide the last. */
static void leak(void)
{
	int i;

	for (i = 0; i < 16; i++) {
		char *memory = kzalloc(BYTES, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(memory);
	}
}

static void lock_order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static void sleep_in_atomic(void)
{
	spin_lock(&spinning);
	might_sleep();
	spin_unlock(&spinning);
}

static void unguarded(void)
{
	if (rcu_dereference(guarded))
		pr_info("there is nothing\n");
}

static void underflow(void)
{
	refcount_t count = REFCOUNT_INIT(0);

	refcount_inc(&count);
}

static void freed_while_it_waits(void)
{
	struct waiting *it = kzalloc(sizeof(*it), GFP_KERNEL);

	if (!it)
		return;
	timer_setup(&it->timer, never, 0);
	mod_timer(&it->timer, jiffies + 3600 * HZ);
	kfree(it);
}

static const struct {
	const char *name;
	void (*make)(void);
} faults[] = {
	{ "use-after-free", use_after_free },
	{ "out-of-bounds", out_of_bounds },
	{ "double-free", double_free },
	{ "leak", leak },
	{ "lock-order", lock_order },
	{ "sleep-in-atomic", sleep_in_atomic },
	{ "unguarded", unguarded },
	{ "underflow", underflow },
	{ "freed-while-it-waits", freed_while_it_waits },
};

static int __init faults_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!strcmp(fault, faults[i].name)) {
			faults[i].make();
			return 0;
		}
	}
	return -EINVAL;
}

static void __exit faults_exit(void)
{
}

module_init(faults_init);
module_exit(faults_exit);

MODULE_DESCRIPTION("Faults made on purpose, for the debug kernel's watchers");
MODULE_LICENSE("Dual MIT/GPL");
