/* SPDX-License-Identifier: MIT */
/*
 * rp, the remote proxy: what it needs is put together here, and signals
 * become events of the loop.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../mux/log.h"
#include "../mux/loop.h"
#include "../mux/session.h"
#include "../mux/sock.h"
#include "../mux/stats.h"
#include "options.h"
#include "server.h"

enum { EXIT_FAILED = 1, EXIT_WRONG_ARGUMENTS = 2 };

struct app {
	struct options options;
	struct log log;
	struct engine engine;
	struct server server;
	struct watch signals;
	bool stopping;
};

/* Made up in memory first, so that it is one piece among other lines. */
static void print_state(struct app *app)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	server_print(&app->server, out);
	fclose(out);
	fwrite(text, 1, len, stderr);
	free(text);
}

static void stop(struct app *app, uint32_t signo)
{
	const char *name = signo == SIGINT ? "SIGINT" : "SIGTERM";

	if (app->stopping) {
		log_info(&app->log, "%s again: ending at once", name);
		stats_flush(app->engine.stats);
		_exit(0);
	}
	app->stopping = true;
	log_info(&app->log, "%s: ending", name);
	server_stop(&app->server);
}

static void signals_ready(struct watch *w, uint32_t events)
{
	struct app *app = container_of(w, struct app, signals);
	struct signalfd_siginfo info;

	(void)events;
	while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			print_state(app);
		else
			stop(app, info.ssi_signo);
	}
}

static int signals_open(struct app *app)
{
	sigset_t set;
	int fd, err;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	app->signals.ready = signals_ready;
	err = loop_watch(app->engine.loop, &app->signals, fd, EPOLLIN);
	if (err)
		close(fd);
	return err;
}

static void signals_close(struct app *app)
{
	loop_close(app->engine.loop, &app->signals);
}

static int stats_start(struct app *app)
{
	const struct config *config = &app->options.config;

	if (!config->stats_path)
		return 0;
	app->engine.stats = stats_open(config->stats_path, "rp", config,
				       app->options.pipes);
	if (app->engine.stats)
		return 0;
	log_error(&app->log, "--stats: cannot write %s: %s",
		  config->stats_path, strerror(errno));
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
	int err = signals_open(app);
	int status;

	if (err) {
		log_error(&app->log, "cannot start: %s", strerror(-err));
		return EXIT_FAILED;
	}
	status = serve(app);
	stats_close(app->engine.stats);
	signals_close(app);
	return status;
}

int main(int argc, char **argv)
{
	struct app app = { .stopping = false };
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
	log_init(&app.log, "rp", (enum log_level)app.options.config.verbosity);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);	/* a full quota is a failed write */
	sock_raise_limit();
	if (engine_init(&app.engine, &app.options.config, &app.log)) {
		log_error(&app.log, "cannot start: %s", strerror(errno));
	} else {
		status = run(&app);
		engine_fini(&app.engine);
	}
	options_fini(&app.options);
	return status;
}
