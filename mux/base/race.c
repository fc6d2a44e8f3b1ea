/* SPDX-License-Identifier: MIT */
#include "race.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "sock.h"

static void begin_next(struct race *r);

/* The socket of @runner is nobody's any more. */
static int leave(struct runner *runner)
{
	int fd = runner->watch.fd;

	loop_unwatch(runner->race->loop, &runner->watch);
	runner->race->running--;
	return fd;
}

void race_stop(struct race *r)
{
	unsigned int i;

	loop_timer_stop(r->loop, &r->step);
	for (i = 0; i < r->begun; i++) {
		if (r->runner[i].watch.fd < 0)
			continue;
		close(leave(&r->runner[i]));
		r->ops->closed(r);
	}
}

/*
 * A server that answered, if only to refuse, tells more than silence; what this
 * host lacks tells more than a network without a way there, as IPv6 often is.
 */
static int weight(int err)
{
	if (err == ECONNREFUSED)
		return 4;
	if (err == ETIMEDOUT)
		return 3;
	return sock_is_shortage(err) ? 2 : 1;
}

/*
 * Of one address. The next one need not wait, unless others are running: then it
 * begins in its time.
 */
static void failed(struct race *r, int err)
{
	if (!r->err || weight(err) > weight(r->err))
		r->err = err;
	if (r->begun < r->n && (!r->running || !r->step.slot))
		begin_next(r);
	else if (!r->running)
		r->ops->lost(r, r->err);
}

static void ended(struct watch *w, uint32_t events)
{
	struct runner *runner = container_of(w, struct runner, watch);
	struct race *r = runner->race;
	int fd = leave(runner), err = sock_error(fd);

	(void)events;
	if (!err) {
		race_stop(r);
		r->ops->won(r, fd);
		return;
	}
	close(fd);
	r->ops->closed(r);
	failed(r, err);
}

/* 0 or -errno. */
static int run(struct race *r, struct runner *runner,
	       const struct sockaddr_storage *to)
{
	int fd = r->ops->dial(r, to);
	int err;

	if (fd < 0)
		return fd;
	err = loop_watch(r->loop, &runner->watch, fd, EPOLLOUT);
	if (err) {
		close(fd);
		r->ops->closed(r);
		return err;
	}
	r->running++;
	return 0;
}

static void begin_next(struct race *r)
{
	unsigned int i = r->begun++;
	int err;

	loop_timer_stop(r->loop, &r->step);
	err = run(r, &r->runner[i], &r->addr[i]);
	if (!err && r->begun < r->n)
		err = loop_timer_in(r->loop, &r->step, RACE_STEP_MS * NS_PER_MS);
	if (err)
		failed(r, -err);
}

static void step_came(struct timer *t)
{
	begin_next(container_of(t, struct race, step));
}

/* From @from on, the first that is (or is not) of @family; @n if none is. */
static unsigned int find(const struct sockaddr_storage *addr, unsigned int n,
			 unsigned int from, int family, bool same)
{
	while (from < n && (addr[from].ss_family == family) != same)
		from++;
	return from;
}

/* The two families in turn, each in the order in which it was given. */
static void put_in_order(struct race *r, const struct sockaddr_storage *addr,
			 unsigned int n)
{
	int family = addr[0].ss_family;
	unsigned int next[2] = { 0, 0 };
	bool same = true;

	while (r->n < n) {
		unsigned int *at = &next[same];

		*at = find(addr, n, *at, family, same);
		if (*at < n)
			r->addr[r->n++] = addr[(*at)++];
		same = !same;
	}
}

void race_init(struct race *r, const struct race_ops *ops, struct loop *loop,
	       const struct sockaddr_storage *addr, unsigned int n)
{
	unsigned int i;

	memset(r, 0, sizeof(*r));
	r->ops = ops;
	r->loop = loop;
	r->step.fire = step_came;
	for (i = 0; i < RACE_MAX; i++) {
		r->runner[i].race = r;
		r->runner[i].watch.fd = -1;
		r->runner[i].watch.ready = ended;
	}
	put_in_order(r, addr, n);
}

void race_start(struct race *r)
{
	begin_next(r);
}
