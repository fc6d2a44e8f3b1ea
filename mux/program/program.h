/* SPDX-License-Identifier: MIT */
/*
 * A proxy as a process: log, engine, signals and statistics around what makes
 * it a remote or a local one.
 *
 *	program_run()	layers_new()	where there are keys
 *			open()		listens; again each second while an
 *					address is not there yet
 *			keylog()	writes no file before it has its addresses
 *			start()		says that it does; dials
 *			(loop)		print(), reload(), then stop() on a
 *					signal
 *			close()
 */
#ifndef TM3_PROGRAM_H
#define TM3_PROGRAM_H

#include <stdio.h>

#include "../base/log.h"
#include "../base/notify.h"
#include "../base/ports.h"
#include "../base/signals.h"
#include "../session/engine.h"
#include "../settings/changes.h"
#include "metrics.h"

enum { EXIT_IN_THE_WAY = 2 };	/* it cannot have what it was told to take */

struct keys;
struct program;

struct program_ops {
	const char *name;	/* "rp", in front of each line of the log */
	/* What encrypts the pipes: see tls/tls.h, which main() alone may choose. */
	struct layers *(*layers_new)(const struct keys *keys, struct log *log);
	int (*keylog)(struct layers *layers, const char *path, struct log *log);
	/*
	 * Get ready, and take the addresses to listen on. Returns 0, or -errno
	 * after it said what is wrong. With -EADDRNOTAVAIL it said nothing and
	 * put the address into @ports: no address of this host yet. It will be
	 * called again, after close().
	 */
	int (*open)(struct program *p);
	/* 0, or -errno after it said what is wrong. */
	int (*start)(struct program *p);
	/* End in order, and then the loop. */
	void (*stop)(struct program *p);
	/* After the loop, or when open() failed. */
	void (*close)(struct program *p);
	/* The table that SIGUSR1 asks for. */
	void (*print)(struct program *p, FILE *out);
	/* How it is in a few words, for who started it. */
	void (*status)(struct program *p, char *text, size_t len);
	/* See notify.h. NULL: there is one loop alone. */
	bool (*alive)(struct program *p);
	/*
	 * SIGHUP: read what the program was told once more, and take over what
	 * can change; no session may be lost. Returns 0, or -1 with a line in
	 * @why: then all is as before.
	 */
	int (*reload)(struct program *p, struct changes *changes, char *why,
		      size_t why_len);
};

struct program {
	const struct program_ops *ops;
	const struct keys *keys;
	struct log log;
	struct engine engine;
	struct signals signals;
	struct timer print_timer;	/* set while a table is being written */
	struct timer limits_timer;	/* statistics of incidents */
	int64_t print_until;
	struct notify notify;
	struct metrics metrics;
	struct ports ports;
	struct timer await_timer;
	bool ended;			/* by a signal, while it waited for that */
};

/*
 * Runs until a signal ends it. Returns the exit status, 0, 1 or EXIT_IN_THE_WAY. @keys:
 * those of --key-file, or NULL. The engine's layers, if there are any, are the caller's to
 * free afterwards.
 */
int program_run(struct program *p, const struct program_ops *ops,
		const struct settings *settings, const struct keys *keys,
		unsigned int pipes);

#endif
