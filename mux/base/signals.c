/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void end(struct signals *s, uint32_t signo)
{
	const char *name = signo == SIGINT ? "SIGINT" : "SIGTERM";

	if (s->ending) {
		s->ops->end_now(s, name);
		_exit(EXIT_SUCCESS);
	}
	s->ending = true;
	s->ops->end(s, name);
}

static void signals_ready(struct watch *w, uint32_t events)
{
	struct signals *s = container_of(w, struct signals, watch);
	struct signalfd_siginfo info;

	(void)events;
	while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			s->ops->print(s);
		else if (info.ssi_signo == SIGHUP)
			s->ops->hang_up(s, "SIGHUP");
		else
			end(s, info.ssi_signo);
	}
}

/* A descriptor to read signals from, so that no handler interrupts the loop. */
static int take_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int signals_open(struct signals *s, const struct signals_ops *ops,
		 struct loop *loop)
{
	int fd, err;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);	/* a full quota is a failed write */
	s->ops = ops;
	s->loop = loop;
	s->ending = false;
	s->watch.ready = signals_ready;
	fd = take_signals();
	if (fd < 0)
		return fd;
	err = loop_watch(loop, &s->watch, fd, EPOLLIN);
	if (err)
		close(fd);
	return err;
}

void signals_close(struct signals *s)
{
	loop_close(s->loop, &s->watch);
}
