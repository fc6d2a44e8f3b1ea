/* SPDX-License-Identifier: MIT */
/*
 * lp, the local proxy of TM³.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/list.h"
#include "../mux/base/log.h"
#include "../mux/base/signals.h"
#include "../mux/base/sock.h"
#include "../mux/session/session.h"
#include "../mux/session/stats.h"
#include "options.h"
#include "proxy.h"

struct program {
	struct options options;
	struct log log;
	struct engine engine;
	struct proxy *proxy;
	struct signals signals;
};

static void end(struct signals *s, const char *name)
{
	(void)name;
	proxy_stop(container_of(s, struct program, signals)->proxy);
}

/* It does not wait for anybody; linger 0 resets what is open. */
static void end_now(struct signals *s, const char *name)
{
	(void)name;
	stats_flush(container_of(s, struct program, signals)->engine.stats);
}

static void print(struct signals *s, FILE *out)
{
	proxy_print(container_of(s, struct program, signals)->proxy, out);
}

static const struct signals_ops signals_ops = {
	.end = end,
	.end_now = end_now,
	.print = print,
};

static int open_stats(struct program *m)
{
	const struct settings *settings = &m->options.settings;

	if (!settings->stats_path)
		return 0;
	m->engine.stats = stats_open(settings->stats_path, "lp", settings,
				     m->options.pipes);
	if (m->engine.stats)
		return 0;
	log_error(&m->log, "--stats: %s cannot be written: %m",
		  settings->stats_path);
	return -1;
}

static int serve(struct program *m)
{
	int err;

	m->proxy = proxy_new(&m->engine, &m->options);
	if (!m->proxy) {
		log_error(&m->log, "no memory or no descriptors to start with");
		return EXIT_FAILURE;
	}
	if (!proxy_start(m->proxy))
		return EXIT_FAILURE;
	err = loop_run(m->engine.loop);
	if (!err)
		return EXIT_SUCCESS;
	log_error(&m->log, "waiting for events failed: %s", strerror(-err));
	return EXIT_FAILURE;
}

static int run(struct program *m)
{
	int status = EXIT_FAILURE;
	int err;

	sock_raise_limit();
	if (engine_init(&m->engine, &m->options.settings, &m->log)) {
		log_error(&m->log, "no memory to start with");
		return status;
	}
	err = signals_open(&m->signals, &signals_ops, m->engine.loop);
	if (err) {
		log_error(&m->log, "signals cannot be taken: %s",
			  strerror(-err));
	} else {
		if (!open_stats(m))
			status = serve(m);
		signals_close(&m->signals);
	}
	proxy_free(m->proxy);
	stats_close(m->engine.stats);
	engine_fini(&m->engine);
	return status;
}

int main(int argc, char **argv)
{
	struct program m = { .proxy = NULL };
	int status;

	if (options_parse(&m.options, argc, argv, &status)) {
		log_init(&m.log, "lp",
			 (enum log_level)m.options.settings.verbosity);
		status = run(&m);
	}
	options_fini(&m.options);
	return status;
}
