/* SPDX-License-Identifier: MIT */
/*
 * lp, the local proxy of TM³.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../mux/list.h"
#include "../mux/log.h"
#include "../mux/session.h"
#include "../mux/sock.h"
#include "../mux/stats.h"
#include "options.h"
#include "proxy.h"

struct program {
	struct options options;
	struct log log;
	struct engine engine;
	struct proxy *proxy;
	struct watch signals;
	bool ending;
};

/* A second signal does not wait for anybody; linger 0 resets what is open. */
static void end(struct program *m)
{
	if (m->ending) {
		stats_flush(m->engine.stats);
		_exit(EXIT_SUCCESS);
	}
	m->ending = true;
	proxy_stop(m->proxy);
}

static void signal_came(struct watch *w, uint32_t events)
{
	struct program *m = container_of(w, struct program, signals);
	struct signalfd_siginfo info;

	(void)events;
	while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			proxy_print(m->proxy, stderr);
		else
			end(m);
	}
}

/* Before any thread starts, so that all threads leave them to the loop. */
static int take_signals(struct program *m)
{
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);	/* a full quota is a failed write */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -1;
	m->signals.ready = signal_came;
	if (!loop_watch(m->engine.loop, &m->signals, fd, EPOLLIN))
		return 0;
	close(fd);
	return -1;
}

static int open_stats(struct program *m)
{
	const struct config *config = &m->options.config;

	if (!config->stats_path)
		return 0;
	m->engine.stats = stats_open(config->stats_path, "lp", config,
				     m->options.pipes);
	if (m->engine.stats)
		return 0;
	log_error(&m->log, "--stats: %s cannot be written: %m",
		  config->stats_path);
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

	sock_raise_limit();
	if (engine_init(&m->engine, &m->options.config, &m->log)) {
		log_error(&m->log, "no memory to start with");
		return status;
	}
	if (take_signals(m)) {
		log_error(&m->log, "signals cannot be taken: %m");
	} else {
		if (!open_stats(m))
			status = serve(m);
		loop_close(m->engine.loop, &m->signals);
	}
	proxy_free(m->proxy);
	stats_close(m->engine.stats);
	engine_fini(&m->engine);
	return status;
}

int main(int argc, char **argv)
{
	struct program m = { .signals.fd = -1 };
	int status;

	if (options_parse(&m.options, argc, argv, &status)) {
		log_init(&m.log, "lp",
			 (enum log_level)m.options.config.verbosity);
		status = run(&m);
	}
	options_fini(&m.options);
	return status;
}
