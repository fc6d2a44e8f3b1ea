/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/addr.h"
#include "../base/memory.h"
#include "../base/sock.h"
#include "../base/user.h"
#include "../session/stats.h"
#include "../settings/settings.h"
#include "sandbox.h"

enum {
	PRINT_MS = 2000,	/* a table's reader has so much time in all */
	PRINT_EVERY_MS = 5,
	REASON_MAX = 1024,	/* a line of the log */
	AWAIT_MS = 1000,	/* between two looks whether an address is there */
};

/* --- signals --- */

static void end(struct signals *s, const char *name)
{
	struct program *p = container_of(s, struct program, signals);

	log_info(&p->log, "%s: ending", name);
	notify_stopping(&p->notify);
	p->ended = true;
	if (*p->ports.awaited)
		loop_stop(p->engine.loop);
	else
		p->ops->stop(p);
}

/* This waits for nobody. Sockets are armed so that what is open is reset. */
static void end_now(struct signals *s, const char *name)
{
	struct program *p = container_of(s, struct program, signals);

	log_info(&p->log, "%s again: ending at once", name);
	stats_flush(p->engine.stats);
	metrics_close(&p->metrics);
}

/* A file with an error changes nothing. */
static void hang_up(struct signals *s, const char *name)
{
	struct program *p = container_of(s, struct program, signals);
	const struct settings *settings = p->engine.settings;
	struct changes changes = { "", "" };
	char why[REASON_MAX];
	int err;

	if (*p->ports.awaited) {
		log_info(&p->log, "%s: still waiting for %s", name, p->ports.awaited);
		return;
	}
	notify_reloading(&p->notify);
	err = p->ops->reload(p, &changes, why, sizeof(why));
	notify_ready(&p->notify);
	if (err) {
		log_error(&p->log, "%s: %s; all stays as it was", name, why);
		return;
	}
	engine_balance(&p->engine);
	log_set_level(&p->log, (enum log_level)settings->verbosity);
	stats_set_interval(p->engine.stats, settings);
	if (*changes.kept)
		log_warn(&p->log, "%s: what changed of %s waits for a restart",
			 name, changes.kept);
	log_info(&p->log, "%s: going on%s%s", name,
		 *changes.taken ? " with new " : "", changes.taken);
}

/* What is left of the table, as its reader makes room. Nobody else waits for that. */
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
	if (*p->ports.awaited)
		fprintf(out, "waiting for %s\n", p->ports.awaited);
	else
		p->ops->print(p, out);
	fclose(out);
	log_text(&p->log, text, len);
	p->print_until = loop_clock() + PRINT_MS * NS_PER_MS;
	print_on(&p->print_timer);
}

static void describe(struct notify *n, char *text, size_t len)
{
	struct program *p = container_of(n, struct program, notify);

	p->ops->status(p, text, len);
}

static bool is_alive(struct notify *n)
{
	struct program *p = container_of(n, struct program, notify);

	return !p->ops->alive || p->ops->alive(p);
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
	int err;

	if (!*settings->stats_path)
		return 0;
	p->engine.stats = stats_open(settings->stats_path, &p->log, settings,
				     pipes);
	if (p->engine.stats)
		return 0;
	err = -errno;
	log_error(&p->log, "--stats: cannot write %s: %s",
		  settings->stats_path, strerror(-err));
	return err;
}

/* Once an interval, if there is anything new. */
static void tell_limits(struct program *p)
{
	uint64_t count[INCIDENTS_KINDS];

	if (incidents_news(&p->engine.incidents, count))
		stats_limits(p->engine.stats, count);
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
		return err;
	}
	err = *settings->cc ? sock_try_cc(settings->cc) : 0;
	if (err)
		log_error(&p->log, "--cc: %s is not for --user %s on this system: net.ipv4.tcp_allowed_congestion_control",
			  settings->cc, settings->user);
	return err;
}

/* Before a stranger's first byte, and before there is another thread. */
static void confine(struct program *p)
{
	int err;

	if (!p->engine.settings->seccomp)
		return;
	err = sandbox_enter();
	if (err)
		log_warn(&p->log, "--seccomp: no filter is in force: %s",
			 strerror(-err));
}

/* --- an address that comes later --- */

static void look_again(struct timer *t)
{
	struct program *p = container_of(t, struct program, await_timer);

	loop_stop(p->engine.loop);
}

static int await(struct program *p, char said[ADDR_TEXT])
{
	char status[NOTIFY_STATUS];
	int err;

	if (strcmp(said, p->ports.awaited))
		log_warn(&p->log, "waiting for %s, which is no address of this "
			 "host yet", p->ports.awaited);
	strcpy(said, p->ports.awaited);
	snprintf(status, sizeof(status), "waiting for %s", p->ports.awaited);
	notify_later(&p->notify, status, 10 * AWAIT_MS);
	err = loop_timer_in(p->engine.loop, &p->await_timer,
			    AWAIT_MS * NS_PER_MS);
	return err ? err : loop_run(p->engine.loop);
}

static int encrypt(struct program *p)
{
	if (!p->keys)
		return 0;
	p->engine.layers = p->ops->layers_new(p->keys, &p->log);
	return p->engine.layers ? 0 : -ENOMEM;
}

/* Nothing is kept meanwhile: who connects to one address finds all or none. */
static int open_all(struct program *p)
{
	char said[ADDR_TEXT] = "";
	int err = encrypt(p);

	if (err)
		goto fini_handed;	/* there is nothing to close yet */
	err = p->ops->open(p);
	while (err == -EADDRNOTAVAIL) {
		p->ops->close(p);
		handed_offer(&p->ports.handed);
		err = await(p, said);
		if (err || p->ended)
			return err ? err : -ECANCELED;
		*p->ports.awaited = '\0';
		err = p->ops->open(p);
	}
	if (err)
		p->ops->close(p);
fini_handed:
	handed_fini(&p->ports.handed);
	return err;
}

/*
 * What the words ask for cannot be had. Where memory or descriptors are short others may
 * give some back; all else meets whoever starts it again with these words.
 */
static int status_of(int err)
{
	return err == -EAGAIN || sock_is_shortage(-err) ? EXIT_FAILURE :
							  EXIT_IN_THE_WAY;
}

/*
 * What the words ask for beside addresses. Files are opened once those are ours: a
 * second process, started by mistake, does not overwrite the files of the first.
 */
static int settle(struct program *p, unsigned int pipes)
{
	int err = metrics_open(&p->metrics, &p->engine, p->ops->name);

	if (!err)
		err = p->ops->keylog(p->engine.layers,
				     p->engine.settings->keylog, &p->log);
	if (!err)
		err = open_stats(p, pipes);
	if (err)
		return err;
	if (p->engine.stats)
		limits_timer(&p->limits_timer);
	return become(p);
}

static int go_on(struct program *p)
{
	int err;

	confine(p);
	if (p->ops->start(p))
		return EXIT_FAILURE;
	if (p->metrics.listener)
		log_info(&p->log, "metrics on %s", p->engine.settings->metrics);
	notify_ready(&p->notify);
	err = loop_run(p->engine.loop);
	if (!err)
		return EXIT_SUCCESS;
	log_error(&p->log, "waiting for events failed: %s", strerror(-err));
	return EXIT_FAILURE;
}

static int serve(struct program *p, unsigned int pipes)
{
	int err = open_all(p), status;

	if (err)
		return p->ended ? EXIT_SUCCESS : status_of(err);
	err = settle(p, pipes);
	status = err ? status_of(err) : go_on(p);
	p->ops->close(p);
	metrics_close(&p->metrics);
	tell_limits(p);
	stats_close(p->engine.stats);
	return status;
}

static void tell_who_started(struct program *p)
{
	int err = notify_open(&p->notify, p->engine.loop, describe, is_alive);

	if (err)
		log_warn(&p->log, "NOTIFY_SOCKET: %s: %s; nobody is told how "
			 "this goes", getenv("NOTIFY_SOCKET"), strerror(-err));
}

int program_run(struct program *p, const struct program_ops *ops,
		const struct settings *settings, const struct keys *keys,
		unsigned int pipes)
{
	int status = EXIT_FAILURE;
	char why[REASON_MAX];
	int err;

	p->ops = ops;
	p->keys = keys;
	p->print_timer.fire = print_on;
	p->await_timer.fire = look_again;
	p->limits_timer.fire = limits_timer;
	log_init(&p->log, ops->name, (enum log_level)settings->verbosity);
	if (handed_init(&p->ports.handed, why, sizeof(why))) {
		log_error(&p->log, "%s", why);
		log_fini(&p->log);
		return EXIT_IN_THE_WAY;
	}
	sock_raise_limit();
	memory_keep(settings->max_memory);
	if (engine_init(&p->engine, settings, &p->log)) {
		log_error(&p->log, "cannot start: %s", strerror(errno));
		return status;
	}
	err = signals_open(&p->signals, &signals_ops, p->engine.loop);
	if (err) {
		log_error(&p->log, "cannot take signals: %s", strerror(-err));
	} else {
		tell_who_started(p);
		status = serve(p, pipes);
		notify_close(&p->notify);
		signals_close(&p->signals);
	}
	engine_fini(&p->engine);
	log_fini(&p->log);
	return status;
}
