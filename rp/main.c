/* SPDX-License-Identifier: MIT */
/*
 * rp, the remote proxy: what it needs is put together here.
 */
#include <errno.h>
#include <string.h>

#include "../mux/base/log.h"
#include "../mux/base/loop.h"
#include "../mux/base/signals.h"
#include "../mux/base/sock.h"
#include "../mux/session/session.h"
#include "../mux/session/stats.h"
#include "options.h"
#include "server.h"

enum { EXIT_FAILED = 1, EXIT_WRONG_ARGUMENTS = 2 };

struct app {
	struct options options;
	struct log log;
	struct engine engine;
	struct server server;
	struct signals signals;
};

static void end(struct signals *s, const char *name)
{
	struct app *app = container_of(s, struct app, signals);

	log_info(&app->log, "%s: ending", name);
	server_stop(&app->server);
}

static void end_now(struct signals *s, const char *name)
{
	struct app *app = container_of(s, struct app, signals);

	log_info(&app->log, "%s again: ending at once", name);
	stats_flush(app->engine.stats);
}

static void print(struct signals *s, FILE *out)
{
	server_print(&container_of(s, struct app, signals)->server, out);
}

static const struct signals_ops signals_ops = {
	.end = end,
	.end_now = end_now,
	.print = print,
};

static int stats_start(struct app *app)
{
	const struct settings *settings = &app->options.settings;

	if (!settings->stats_path)
		return 0;
	app->engine.stats = stats_open(settings->stats_path, "rp", settings,
				       app->options.pipes);
	if (app->engine.stats)
		return 0;
	log_error(&app->log, "--stats: cannot write %s: %s",
		  settings->stats_path, strerror(errno));
	return -1;
}

/*
 * Statistics start once the addresses are ours: a second rp, started by
 * mistake, does not wipe the file of the first.
 */
static int serve(struct app *app)
{
	int err = server_open(&app->server, &app->engine, &app->options);

	if (err)
		return EXIT_FAILED;
	if (stats_start(app)) {
		server_stop(&app->server);
		return EXIT_FAILED;
	}
	server_announce(&app->server);
	err = loop_run(app->engine.loop);
	if (err)
		log_error(&app->log, "cannot go on: %s", strerror(-err));
	return err ? EXIT_FAILED : 0;
}

/* Between having a loop and giving it back. */
static int run(struct app *app)
{
	int err = signals_open(&app->signals, &signals_ops, app->engine.loop);
	int status;

	if (err) {
		log_error(&app->log, "cannot start: %s", strerror(-err));
		return EXIT_FAILED;
	}
	status = serve(app);
	stats_close(app->engine.stats);
	signals_close(&app->signals);
	return status;
}

int main(int argc, char **argv)
{
	struct app app = { 0 };
	int status = EXIT_FAILED;

	switch (options_parse(&app.options, argc, argv)) {
	case OPTIONS_RUN:
		break;
	case OPTIONS_ANSWERED:
		options_fini(&app.options);
		return 0;
	case OPTIONS_WRONG:
		options_fini(&app.options);
		return EXIT_WRONG_ARGUMENTS;
	}
	log_init(&app.log, "rp", (enum log_level)app.options.settings.verbosity);
	sock_raise_limit();
	if (engine_init(&app.engine, &app.options.settings, &app.log)) {
		log_error(&app.log, "cannot start: %s", strerror(errno));
	} else {
		status = run(&app);
		engine_fini(&app.engine);
	}
	options_fini(&app.options);
	return status;
}
