/* SPDX-License-Identifier: MIT */
/*
 * Signals as events of the loop.
 *
 * SIGTERM and SIGINT ask for the end, the second of them for one at once.
 * SIGHUP, which a terminal sends when it closes too, does not end anything: what
 * the program was told is read again.
 * SIGUSR1 asks for a table on stderr. SIGPIPE and SIGXFSZ are ignored: a write
 * fails instead.
 */
#ifndef TM3_SIGNALS_H
#define TM3_SIGNALS_H

#include <stdbool.h>

#include "loop.h"

struct signals;

struct signals_ops {
	/* SIGTERM or SIGINT, its @name: end in order. */
	void (*end)(struct signals *s, const char *name);
	/* One more: save what is to be saved, then the process exits with 0. */
	void (*end_now)(struct signals *s, const char *name);
	/* SIGHUP, its @name: read again, and go on. */
	void (*hang_up)(struct signals *s, const char *name);
	/* SIGUSR1: print the table. */
	void (*print)(struct signals *s);
};

struct signals {
	const struct signals_ops *ops;
	struct loop *loop;
	struct watch watch;
	bool ending;
};

/*
 * To be called before any thread starts, so that all threads leave signals to
 * the loop. 0 or -errno.
 */
int signals_open(struct signals *s, const struct signals_ops *ops,
		 struct loop *loop);
void signals_close(struct signals *s);

#endif
