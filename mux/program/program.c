/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/sock.h"
#include "../base/user.h"
#include "../session/stats.h"

enum {
	PRINT_MS = 2000,	/* a table's reader has so much time in all */
	PRINT_EVERY_MS = 5,
};

/* --- signals --- */

static void end(struct signals *s, const char *name)
{
	struct program *p = container_of(s, struct program, signals);

	log_info(&p->log, "%s: ending", name);
	p->ops->stop(p);
}

/* This waits for nobody. Sockets are armed so that what is open is reset. */
static void end_now(struct signals *s, const char *name)
{
	struct program *p = container_of(s, struct program, signals);

	log_info(&p->log, "%s again: ending at once", name);
	stats_flush(p->engine.stats);
}

/* There is no configuration file that could be read again. */
static void hang_up(struct signals *s, const char *name)
{
	struct program *p = container_of(s, struct program, signals);

	log_info(&p->log, "%s: going on", name);
}

/* The rest of the table, as its reader makes room. Nobody else waits for that. */
static void print_on(struct timer *t)
{
	struct program *p = container_of(t, struct program, print_timer);

	if (!log_go_on(&p->log))
		return;
	if (loop_clock() > p->print_until ||
	    loop_timer_in(p->engine.loop, t, PRINT_EVERY_MS * NS_PER_MS))
		log_give_up(&p->log);
}

/* The table is built in memory first, so that no other line cuts it in two. */
static void print(struct signals *s)
{
	struct program *p = container_of(s, struct program, signals);
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	p->ops->print(p, out);
	fclose(out);
	log_text(&p->log, text, len);
	p->print_until = loop_clock() + PRINT_MS * NS_PER_MS;
	print_on(&p->print_timer);
}

static const struct signals_ops signals_ops = {
	.end = end,
	.end_now = end_now,
	.hang_up = hang_up,
	.print = print,
};

/* --- from start to end --- */

static int open_stats(struct program *p, unsigned int pipes)
{
	const struct settings *settings = p->engine.settings;

	if (!*settings->stats_path)
		return 0;
	p->engine.stats = stats_open(settings->stats_path, &p->log, settings,
				     pipes);
	if (p->engine.stats)
		return 0;
	log_error(&p->log, "--stats: cannot write %s: %s",
		  settings->stats_path, strerror(errno));
	return -1;
}

/* Once an interval, if there is anything new. */
static void tell_limits(struct program *p)
{
	struct refusals *refusals = &p->engine.refusals;

	if (!refusals->changed)
		return;
	refusals->changed = false;
	stats_limits(p->engine.stats, refusals);
}

static void limits_timer(struct timer *t)
{
	struct program *p = container_of(t, struct program, limits_timer);
	double seconds = p->engine.settings->stats_interval;

	tell_limits(p);
	loop_timer_in(p->engine.loop, t,
		      (int64_t)(seconds * (double)NS_PER_SEC));
}

/* What root alone may do has been done. A new pipe's --cc will come later. */
static int become(struct program *p)
{
	const struct settings *settings = p->engine.settings;
	int err;

	if (!*settings->user)
		return 0;
	err = user_become(settings->user);
	if (err) {
		log_error(&p->log, "--user: this process cannot become %s: %s",
			  settings->user, strerror(-err));
		return -1;
	}
	if (*settings->cc && sock_try_cc(settings->cc)) {
		log_error(&p->log, "--cc: %s is not for --user %s on this system: net.ipv4.tcp_allowed_congestion_control",
			  settings->cc, settings->user);
		return -1;
	}
	return 0;
}

/*
 * Statistics are opened once the addresses are ours: a second process, started
 * by mistake, does not overwrite the file of the first.
 */
static int serve(struct program *p, unsigned int pipes)
{
	int err = p->ops->open(p);

	if (!err)
		err = open_stats(p, pipes);
	if (!err && p->engine.stats)
		limits_timer(&p->limits_timer);
	if (!err)
		err = become(p);
	if (!err) {
		p->ops->start(p);
		err = loop_run(p->engine.loop);
		if (err)
			log_error(&p->log, "waiting for events failed: %s",
				  strerror(-err));
	}
	p->ops->close(p);
	tell_limits(p);
	stats_close(p->engine.stats);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int program_run(struct program *p, const struct program_ops *ops,
		const struct settings *settings, unsigned int pipes)
{
	int status = EXIT_FAILURE;
	int err;

	p->ops = ops;
	p->print_timer.fire = print_on;
	p->limits_timer.fire = limits_timer;
	log_init(&p->log, ops->name, (enum log_level)settings->verbosity);
	sock_raise_limit();
	if (engine_init(&p->engine, settings, &p->log)) {
		log_error(&p->log, "cannot start: %s", strerror(errno));
		return status;
	}
	err = signals_open(&p->signals, &signals_ops, p->engine.loop);
	if (err) {
		log_error(&p->log, "cannot take signals: %s", strerror(-err));
	} else {
		status = serve(p, pipes);
		signals_close(&p->signals);
	}
	engine_fini(&p->engine);
	log_fini(&p->log);
	return status;
}
