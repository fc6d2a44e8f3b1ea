/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 128, BEHIND_ROUNDS = 8 };

/* Nobody is that late who was not stopped, or has far too much to do. */
#define STOPPED_NS (NS_PER_SEC / 10)

/*
 * A timer of the kernel's that wakes the loop for its own. A timeout of epoll_wait() would be one for
 * each call, set and taken back whenever an event comes first, and where it is the next thing that
 * its processor has to wake for that costs as much as the wait. The alarm is set again once it has rung,
 * or when a timer is due before it. It may ring for a timer that was stopped.
 */
struct alarm {
	struct watch watch;
	int64_t at;		/* it rings then; NEVER: not at all */
};

#define NEVER INT64_MAX

struct loop {
	int epfd;
	struct alarm alarm;
	bool running;
	unsigned int behind;	/* rounds in which events and tasks come before timers */
	int64_t now;
	uint64_t round;
	struct epoll_event batch[BATCH];
	int batch_len;
	int batch_at;
	struct timer **heap;	/* from 1 */
	unsigned int timers;
	unsigned int heap_size;
	struct list tasks;
	struct list later;
};

int64_t loop_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

int64_t loop_now(const struct loop *loop)
{
	return loop->now;
}

uint64_t loop_round(const struct loop *loop)
{
	return loop->round;
}

static void rang(struct watch *w, uint32_t events)
{
	(void)events;
	container_of(w, struct alarm, watch)->at = NEVER;
}

/* Told of by its edge, it need not be read. */
static int have_alarm(struct loop *loop)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	loop->alarm.watch.ready = rang;
	loop->alarm.at = NEVER;
	if (fd < 0)
		return -1;
	if (!loop_watch(loop, &loop->alarm.watch, fd, EPOLLIN | EPOLLET))
		return 0;
	close(fd);
	return -1;
}

struct loop *loop_new(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epfd < 0)
		goto free_loop;
	if (have_alarm(loop) < 0)
		goto close_epoll;
	list_init(&loop->tasks);
	list_init(&loop->later);
	loop->now = loop_clock();
	return loop;

close_epoll:
	close(loop->epfd);
free_loop:
	free(loop);
	return NULL;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	close(loop->alarm.watch.fd);
	close(loop->epfd);
	free(loop->heap);
	free(loop);
}

/* --- descriptors --- */

int loop_watch(struct loop *loop, struct watch *w, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	w->fd = fd;
	w->events = events;
	return 0;
}

int loop_want(struct loop *loop, struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (w->events == events)
		return 0;
	if (epoll_ctl(loop->epfd, EPOLL_CTL_MOD, w->fd, &ev) < 0)
		return -errno;
	w->events = events;
	return 0;
}

static void forget(struct loop *loop, struct watch *w)
{
	int i;

	w->fd = -1;
	w->events = 0;
	for (i = loop->batch_at; i < loop->batch_len; i++) {
		if (loop->batch[i].data.ptr == w)
			loop->batch[i].data.ptr = NULL;
	}
}

void loop_unwatch(struct loop *loop, struct watch *w)
{
	if (w->fd < 0)
		return;
	epoll_ctl(loop->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	forget(loop, w);
}

void loop_close(struct loop *loop, struct watch *w)
{
	if (w->fd < 0)
		return;
	close(w->fd);
	forget(loop, w);
}

/* --- timers: a binary heap, each timer knowing its place --- */

static void heap_put(struct loop *loop, unsigned int slot, struct timer *t)
{
	loop->heap[slot] = t;
	t->slot = slot;
}

static void heap_up(struct loop *loop, unsigned int slot)
{
	struct timer *t = loop->heap[slot];

	while (slot > 1 && loop->heap[slot / 2]->at > t->at) {
		heap_put(loop, slot, loop->heap[slot / 2]);
		slot /= 2;
	}
	heap_put(loop, slot, t);
}

static void heap_down(struct loop *loop, unsigned int slot)
{
	struct timer *t = loop->heap[slot];
	unsigned int child;

	while ((child = slot * 2) <= loop->timers) {
		if (child < loop->timers &&
		    loop->heap[child + 1]->at < loop->heap[child]->at)
			child++;
		if (loop->heap[child]->at >= t->at)
			break;
		heap_put(loop, slot, loop->heap[child]);
		slot = child;
	}
	heap_put(loop, slot, t);
}

static int heap_grow(struct loop *loop)
{
	unsigned int size = loop->heap_size ? loop->heap_size * 2 : 64;
	struct timer **heap;

	if (loop->timers + 1 < loop->heap_size)
		return 0;
	heap = realloc(loop->heap, size * sizeof(struct timer *));
	if (!heap)
		return -ENOMEM;
	loop->heap = heap;
	loop->heap_size = size;
	return 0;
}

int loop_timer_at(struct loop *loop, struct timer *t, int64_t at)
{
	int err;

	loop_timer_stop(loop, t);
	err = heap_grow(loop);
	if (err)
		return err;
	t->at = at;
	heap_put(loop, ++loop->timers, t);
	heap_up(loop, t->slot);
	return 0;
}

int loop_timer_in(struct loop *loop, struct timer *t, int64_t ns)
{
	return loop_timer_at(loop, t, loop_clock() + ns);
}

int loop_timer_by(struct loop *loop, struct timer *t, int64_t at)
{
	return t->slot && t->at <= at ? 0 : loop_timer_at(loop, t, at);
}

void loop_timer_stop(struct loop *loop, struct timer *t)
{
	unsigned int slot = t->slot;
	struct timer *last;

	if (!slot)
		return;
	t->slot = 0;
	last = loop->heap[loop->timers--];
	if (last == t)
		return;
	heap_put(loop, slot, last);
	heap_up(loop, slot);
	heap_down(loop, last->slot);
}

static void fire_timers(struct loop *loop, int64_t due)
{
	if (due > loop->now)
		loop->now = due;
	while (loop->timers && loop->heap[1]->at <= due) {
		struct timer *t = loop->heap[1];

		loop_timer_stop(loop, t);
		t->fire(t);
	}
}

/*
 * A batch may take long: those that are due do not wait for the end of it. But while a process
 * was stopped, or the machine slept, timers became due and what they wait for may have come as
 * well, or was about to be done. So the events that are there are handled first then, and the tasks
 * that were asked for, and these timers fire behind them: behind a few rounds, while tasks that could
 * not do all of it ask for themselves again. What is due is so by one reading of the clock, ahead of
 * the events: who is stopped behind it is not too late for what became due since.
 */
static void look_at_timers(struct loop *loop)
{
	int64_t now = loop_clock();
	int64_t late = loop->timers ? now - loop->heap[1]->at : -1;

	if (late > STOPPED_NS)
		loop->behind = BEHIND_ROUNDS;
	else if (late >= 0)
		fire_timers(loop, now);
}

/* --- tasks --- */

void loop_task_init(struct task *t, void (*run)(struct task *t))
{
	list_init(&t->node);
	t->run = run;
}

void loop_after(struct loop *loop, struct task *t)
{
	if (list_empty(&t->node))
		list_add_tail(&loop->tasks, &t->node);
}

void loop_later(struct loop *loop, struct task *t)
{
	if (list_empty(&t->node))
		list_add_tail(&loop->later, &t->node);
}

void loop_task_stop(struct task *t)
{
	list_del(&t->node);
}

/* A task that asks for itself again runs in the next round. */
static void run_tasks(struct loop *loop, bool behind)
{
	struct list now;

	list_init(&now);
	while (!list_empty(&loop->tasks))
		list_move_tail(&now, loop->tasks.next);
	while (!list_empty(&now)) {
		struct task *t = list_first(&now, struct task, node);

		list_del(&t->node);
		t->run(t);
		if (!behind)
			look_at_timers(loop);
	}
}

/* One that asks for itself again stands last. */
static void run_later(struct loop *loop)
{
	int64_t until;

	if (list_empty(&loop->later))
		return;
	until = loop_clock() + LOOP_LATER_US * NS_PER_US;
	do {
		struct task *t = list_first(&loop->later, struct task, node);

		list_del(&t->node);
		t->run(t);
	} while (!list_empty(&loop->later) && loop_clock() < until);
}

static bool has_tasks(const struct loop *loop)
{
	return !list_empty(&loop->tasks) || !list_empty(&loop->later);
}

/* --- rounds --- */

/* To ring at @at, or up to a millisecond later, which may do for the next ones as well. */
static int set_alarm(struct alarm *alarm, int64_t now, int64_t at)
{
	int64_t ns = (at - now + NS_PER_MS - 1) / NS_PER_MS * NS_PER_MS;
	struct itimerspec ring = { .it_value = { .tv_sec = ns / NS_PER_SEC,
						 .tv_nsec = ns % NS_PER_SEC } };

	if (alarm->at > now && alarm->at <= at + NS_PER_MS)
		return 0;
	alarm->at = now + ns;
	return timerfd_settime(alarm->watch.fd, 0, &ring, NULL) ? -errno : 0;
}

/* For how long, as epoll_wait() has it: not at all, or until something wakes it. Or -errno. */
static int prepare_wait(struct loop *loop, int *ms)
{
	int64_t now;

	*ms = has_tasks(loop) ? 0 : -1;
	if (!*ms || !loop->timers)
		return 0;
	now = loop_clock();
	if (loop->heap[1]->at > now)
		return set_alarm(&loop->alarm, now, loop->heap[1]->at);
	*ms = 0;
	return 0;
}

/*
 * Events, or 0 when a timer is due or a task waits; -errno. Who is continued after SIGSTOP is
 * interrupted.
 */
static int wait_for_some(struct loop *loop)
{
	int n, ms, err = prepare_wait(loop, &ms);

	if (err)
		return err;
	do {
		n = epoll_wait(loop->epfd, loop->batch, BATCH, ms);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int run_round(struct loop *loop)
{
	unsigned int behind = loop->behind;
	int64_t due = behind ? loop_clock() : 0;
	int n = wait_for_some(loop);

	if (n < 0)
		return n;
	loop->behind = 0;
	loop->now = loop_clock();
	loop->round++;
	loop->batch_len = n;
	for (loop->batch_at = 0; loop->batch_at < n;) {
		struct epoll_event *ev = &loop->batch[loop->batch_at++];
		struct watch *w = ev->data.ptr;

		if (w)
			w->ready(w, ev->events);
		if (!behind)
			look_at_timers(loop);
	}
	loop->batch_len = 0;
	if (!behind)
		look_at_timers(loop);
	run_tasks(loop, behind);
	if (behind && !list_empty(&loop->tasks))
		loop->behind = behind - 1;
	if (behind && !loop->behind)
		fire_timers(loop, due);
	run_later(loop);
	return 0;
}

int loop_run(struct loop *loop)
{
	int err = 0;

	loop->running = true;
	while (loop->running && !err)
		err = run_round(loop);
	while (has_tasks(loop)) {
		loop->round++;
		run_tasks(loop, false);
		run_later(loop);
	}
	return err;
}

void loop_stop(struct loop *loop)
{
	loop->running = false;
}
