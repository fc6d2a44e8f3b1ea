/* SPDX-License-Identifier: MIT */
/*
 * A batch of events, or of tasks, that takes long: timers do not wait for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "loopback.h"

enum { MANY = 50, EACH_MS = 2, DUE_MS = 5 };

static struct {
	struct loop *loop;
	struct timer timer;
	int done;		/* handlers or tasks */
	int done_at_timer;	/* -1: it did not fire */
} scene;

/* As one that has much to read. */
static void be_busy(void)
{
	int64_t until = loop_clock() + EACH_MS * NS_PER_MS;

	while (loop_clock() < until)
		;
	scene.done++;
}

static void watch_ready(struct watch *w, uint32_t events)
{
	(void)events;
	loop_unwatch(scene.loop, w);
	be_busy();
}

static void task_runs(struct task *t)
{
	(void)t;
	be_busy();
}

static void timer_fires(struct timer *t)
{
	(void)t;
	assert_true(loop_now(scene.loop) >= t->at);
	scene.done_at_timer = scene.done;
}

static bool all_done(void *arg)
{
	(void)arg;
	return scene.done == MANY && scene.done_at_timer >= 0;
}

static int setup(void **state)
{
	(void)state;
	scene.loop = loop_new();
	scene.timer = (struct timer){ .fire = timer_fires };
	scene.done = 0;
	scene.done_at_timer = -1;
	loop_timer_in(scene.loop, &scene.timer, DUE_MS * NS_PER_MS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	loop_free(scene.loop);
	return 0;
}

static void assert_timer_in_between(void)
{
	assert_true(run_until(scene.loop, "all of them", all_done, NULL));
	assert_in_range(scene.done_at_timer, 1, 2 * DUE_MS / EACH_MS + 2);
}

static void a_timer_does_not_wait_for_a_batch(void **state)
{
	struct watch watch[MANY];
	int fd[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		fd[i] = eventfd(1, EFD_NONBLOCK);
		watch[i] = (struct watch){ .fd = -1, .ready = watch_ready };
		assert_int_equal(loop_watch(scene.loop, &watch[i], fd[i],
					    EPOLLIN), 0);
	}
	assert_timer_in_between();
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
}

static void a_timer_does_not_wait_for_tasks(void **state)
{
	struct task task[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		loop_task_init(&task[i], task_runs);
		loop_after(scene.loop, &task[i]);
	}
	assert_timer_in_between();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_timer_does_not_wait_for_a_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_timer_does_not_wait_for_tasks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
