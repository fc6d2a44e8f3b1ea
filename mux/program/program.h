/* SPDX-License-Identifier: MIT */
/*
 * A proxy as a process: log, engine, signals and statistics around what makes
 * it a remote or a local one.
 *
 *	program_run()	open()		listens
 *			start()		says that it does; dials
 *			(loop)		print(), then stop() on a signal
 *			close()
 */
#ifndef TM3_PROGRAM_H
#define TM3_PROGRAM_H

#include <stdio.h>

#include "../base/log.h"
#include "../base/signals.h"
#include "../session/session.h"

struct program;

struct program_ops {
	const char *name;	/* "rp", in front of each line of the log */
	/*
	 * Get ready, and take the addresses to listen on. Returns 0, or -1
	 * after it said what is wrong.
	 */
	int (*open)(struct program *p);
	void (*start)(struct program *p);
	/* End in order, and then the loop. */
	void (*stop)(struct program *p);
	/* After the loop, or when open() failed. */
	void (*close)(struct program *p);
	/* The table that SIGUSR1 asks for. */
	void (*print)(struct program *p, FILE *out);
};

struct program {
	const struct program_ops *ops;
	struct log log;
	struct engine engine;
	struct signals signals;
	struct timer print_timer;	/* set while a table is being written */
	struct timer limits_timer;	/* statistics of what was refused */
	int64_t print_until;
};

/* Runs until a signal ends it. Returns the exit status, 0 or 1. */
int program_run(struct program *p, const struct program_ops *ops,
		const struct settings *settings, unsigned int pipes);

#endif
