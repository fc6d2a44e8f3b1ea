/* SPDX-License-Identifier: MIT */
/*
 * The event loop: descriptors, timers, and tasks for after the batch.
 *
 * One thread, one epoll, and one timer of the kernel's that wakes it for all timers. A round
 * is: wait, give out the batch of events, fire the timers that are due, run the tasks that were
 * asked for meanwhile. Tasks are where things are freed and where a session sends: whatever
 * the batch brought is then known, so that one decision serves it all. Timers that are
 * late because the process was stopped fire behind the tasks.
 *
 * This is the only caller of epoll_ctl. All structs are the caller's, embedded
 * in what they belong to; container_of() leads back.
 */
#ifndef TM3_LOOP_H
#define TM3_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"

#define NS_PER_SEC INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_US INT64_C(1000)

static inline int64_t ns_of_ms(double ms)
{
	return (int64_t)(ms * NS_PER_MS);
}

enum { LOOP_LATER_US = 100 };

struct loop;

struct watch {
	int fd;			/* -1 while not watched */
	uint32_t events;	/* what epoll was told */
	void (*ready)(struct watch *w, uint32_t events);
};

struct timer {
	int64_t at;
	unsigned int slot;	/* place in the heap, from 1; 0 while idle */
	void (*fire)(struct timer *t);
};

struct task {
	struct list node;
	void (*run)(struct task *t);
};

struct loop *loop_new(void);
void loop_free(struct loop *loop);

/* Runs until loop_stop(). Returns 0 or -errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * CLOCK_MONOTONIC in ns, as of the start of this batch or, if timers fired since,
 * of that moment (or anew).
 */
int64_t loop_now(const struct loop *loop);
int64_t loop_clock(void);
/* How many rounds have begun. */
uint64_t loop_round(const struct loop *loop);

/*
 * Watch @fd for @events (EPOLLIN, ...; EPOLLET where wanted). After
 * loop_unwatch() the watch hears nothing more, not even of this batch; the
 * descriptor stays open and is the caller's to close.
 */
int loop_watch(struct loop *loop, struct watch *w, int fd, uint32_t events);
int loop_want(struct loop *loop, struct watch *w, uint32_t events);
void loop_unwatch(struct loop *loop, struct watch *w);
/*
 * The same, and closes it, which is all that epoll needs to be told as long as no process has another
 * descriptor of it: one that was handed over is for loop_unwatch() and close(). Nothing while not watched.
 */
void loop_close(struct loop *loop, struct watch *w);

/* Setting a timer that is set moves it. */
int loop_timer_at(struct loop *loop, struct timer *t, int64_t at);
int loop_timer_in(struct loop *loop, struct timer *t, int64_t ns);
/* The same, unless it is set for sooner. */
int loop_timer_by(struct loop *loop, struct timer *t, int64_t at);
void loop_timer_stop(struct loop *loop, struct timer *t);

/* Run @t after this batch, once however often it is asked for. */
void loop_task_init(struct task *t, void (*run)(struct task *t));
void loop_after(struct loop *loop, struct task *t);
/*
 * The same for what nobody waits for, such as giving back what has ended: in the order in which
 * it was asked for, for LOOP_LATER_US in a round, one task at least.
 */
void loop_later(struct loop *loop, struct task *t);
void loop_task_stop(struct task *t);

#endif
