/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "attempt.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/sock.h"
#include "departure.h"

enum { REASON_MAX = 160 };

void attempt_stop(struct attempt *a)
{
	unsigned int i;

	for (i = 0; i < a->pipes; i++) {
		struct dial *dial = &a->dial[i];

		loop_unwatch(a->loop, &dial->watch);
		if (dial->fd >= 0)
			close(dial->fd);
		dial->fd = -1;
		dial->up = false;
		dial->err = 0;
	}
	a->up = a->failed = 0;
}

static void attempt_failed(struct attempt *a, const char *why)
{
	attempt_stop(a);
	a->ops->failed(a, why);
}

static void all_up(struct attempt *a)
{
	int fds[PIPES_MAX];
	unsigned int i;

	for (i = 0; i < a->pipes; i++) {
		fds[i] = a->dial[i].fd;
		loop_unwatch(a->loop, &a->dial[i].watch);
		a->dial[i].fd = -1;
	}
	attempt_stop(a);
	a->ops->up(a, fds, a->pipes);
}

/*
 * If some pipes came up, or SCTP was asked for, the transport may be the reason,
 * so the line names it. If RP did not answer at all, it is not.
 */
static void explain(struct attempt *a, const struct dial *dial, const char *why)
{
	char reason[REASON_MAX];
	bool matters = a->transports->n > 1 ? a->up > 0 :
		       dial->kind == TRANSPORT_SCTP;

	a->err = dial->err;
	if (!matters) {
		attempt_failed(a, why);
		return;
	}
	snprintf(reason, sizeof(reason), "%s: %s; rp takes it when its --pipe names it",
		 transport_name(dial->kind), why);
	attempt_failed(a, reason);
}

/* The first pipe that is not up. */
static const struct dial *missing(const struct attempt *a)
{
	unsigned int i;

	for (i = 0; i + 1 < a->pipes && a->dial[i].up; i++)
		;
	return &a->dial[i];
}

void attempt_give_up(struct attempt *a, const char *why)
{
	explain(a, missing(a), why);
}

static void conclude(struct attempt *a)
{
	const struct dial *dial = missing(a);

	if (a->up + a->failed < a->pipes)
		return;
	if (a->failed)
		explain(a, dial, strerror(dial->err));
	else
		all_up(a);
}

static void dial_failed(struct attempt *a, struct dial *dial, int err)
{
	loop_unwatch(a->loop, &dial->watch);
	dial->err = err;
	a->failed++;
	if (a->transports->n == 1)
		explain(a, dial, strerror(err));
	else
		conclude(a);
}

static void answered(struct watch *w, uint32_t events)
{
	struct dial *dial = container_of(w, struct dial, watch);
	struct attempt *a = dial->attempt;
	int err = sock_error(dial->fd);

	(void)events;
	if (err) {
		dial_failed(a, dial, err);
		return;
	}
	/* Until all are up, only a hang-up matters. epoll always reports it. */
	loop_want(a->loop, w, 0);
	if (dial->up) {
		attempt_failed(a, "the other end closed a pipe");
		return;
	}
	dial->up = true;
	a->up++;
	conclude(a);
}

static int dial_one(struct dial *dial, const struct sockaddr_storage *addr)
{
	dial->fd = sock_connect(departure_socket(dial->attempt->path, dial->kind,
						 addr->ss_family), addr);
	if (dial->fd < 0)
		return dial->fd;
	return loop_watch(dial->attempt->loop, &dial->watch, dial->fd,
			  EPOLLOUT);
}

/*
 * A connect() that fails at once may end this attempt and begin the next one,
 * which its number tells.
 */
void attempt_start(struct attempt *a, const struct sockaddr_storage *addr)
{
	unsigned int number = ++a->number;
	unsigned int i;

	a->err = 0;
	for (i = 0; i < a->pipes && a->number == number; i++) {
		int err = dial_one(&a->dial[i], addr);

		if (err)
			dial_failed(a, &a->dial[i], -err);
		if (err && !a->failed)
			return;
	}
}

void attempt_init(struct attempt *a, const struct attempt_ops *ops,
		  struct loop *loop, const struct transport_set *transports,
		  unsigned int pipes)
{
	unsigned int i;

	memset(a, 0, sizeof(*a));
	a->ops = ops;
	a->loop = loop;
	a->transports = transports;
	a->pipes = pipes;
	for (i = 0; i < PIPES_MAX; i++) {
		a->dial[i].attempt = a;
		a->dial[i].fd = a->dial[i].watch.fd = -1;
		a->dial[i].watch.ready = answered;
		a->dial[i].kind = transport_set_of(transports, i);
	}
}
