/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "loopback.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mux/conn/conn.h"

enum { PATIENCE_MS = 30000 };

static int checked(const char *what, int result)
{
	if (result < 0) {
		perror(what);
		abort();
	}
	return result;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

int tcp_listen(int backlog, uint16_t *port)
{
	struct sockaddr_in addr = loopback(0);
	socklen_t len = sizeof(addr);
	int fd = checked("socket", socket(AF_INET, SOCK_STREAM, 0));

	checked("bind", bind(fd, (struct sockaddr *)&addr, len));
	checked("listen", listen(fd, backlog));
	checked("getsockname", getsockname(fd, (struct sockaddr *)&addr, &len));
	*port = ntohs(addr.sin_port);
	return fd;
}

int tcp_connect(uint16_t port)
{
	struct sockaddr_in addr = loopback(port);
	int fd = checked("socket",
			 socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));

	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 &&
	    errno != EINPROGRESS)
		checked("connect", -1);
	return fd;
}

int tcp_accept(int listener)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };

	if (poll(&pfd, 1, PATIENCE_MS) != 1)
		checked("nobody connected in time", -1);
	return checked("accept", accept4(listener, NULL, NULL, SOCK_NONBLOCK));
}

static void pair_by(int listener, uint16_t port, int fd[2])
{
	fd[0] = tcp_connect(port);
	fd[1] = tcp_accept(listener);
	close(listener);
}

void tcp_pair(int fd[2])
{
	uint16_t port;
	int listener = tcp_listen(1, &port);

	pair_by(listener, port, fd);
}

void app_pair(int fd[2])
{
	uint16_t port;
	int listener = tcp_listen(1, &port);

	conn_prepare(listener);
	pair_by(listener, port, fd);
}

long read_some(int fd, void *buf, size_t size)
{
	ssize_t n = recv(fd, buf, size, MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

struct until {
	struct timer timer;
	struct task task;
	struct loop *loop;
	bool (*done)(void *arg);
	void *arg;
	int64_t deadline;
	bool met;
};

static void look(struct timer *t)
{
	struct until *u = container_of(t, struct until, timer);

	u->met = u->done(u->arg);
	if (u->met || loop_clock() > u->deadline)
		loop_stop(u->loop);
	else
		loop_timer_in(u->loop, t, NS_PER_MS / 2);
}

void small_buffers(int to, int from)
{
	int small = 16 << 10;

	setsockopt(to, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(from, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
}

void fill_socket(int from)
{
	static const uint8_t bytes[1 << 16];

	for (int still = 0; still < 3; still++) {
		while (send(from, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
			still = 0;
		poll(NULL, 0, 2);	/* some of it may be on its way */
	}
}

bool run_until(struct loop *loop, const char *what, bool (*done)(void *arg),
	       void *arg)
{
	struct until u = {
		.timer.fire = look,
		.loop = loop,
		.done = done,
		.arg = arg,
		.deadline = loop_clock() + PATIENCE_MS * NS_PER_MS,
	};

	loop_timer_in(loop, &u.timer, 0);
	loop_run(loop);
	if (!u.met)
		fprintf(stderr, "waited in vain: %s\n", what);
	return u.met;
}

static void stop(struct task *t)
{
	loop_stop(container_of(t, struct until, task)->loop);
}

void run_round(struct loop *loop)
{
	struct until u = { .loop = loop };

	loop_task_init(&u.task, stop);
	loop_after(loop, &u.task);
	loop_run(loop);
}

bool run_rounds(struct loop *loop, const char *what, bool (*done)(void *arg),
		void *arg)
{
	for (int left_ms = PATIENCE_MS; left_ms; left_ms--) {
		run_round(loop);
		if (done(arg))
			return true;
		poll(NULL, 0, 1);
	}
	fprintf(stderr, "waited in vain: %s\n", what);
	return false;
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct stretch {
	struct timer timer;
	struct loop *loop;
};

static void stretch_ended(struct timer *t)
{
	loop_stop(container_of(t, struct stretch, timer)->loop);
}

double loop_load(struct loop *loop, int ms)
{
	struct stretch s = { .timer.fire = stretch_ended, .loop = loop };
	double before = cpu_seconds();

	checked("timer", loop_timer_in(loop, &s.timer, ms * NS_PER_MS));
	checked("loop", loop_run(loop));
	return (cpu_seconds() - before) / ms * 1e5;
}
