/* SPDX-License-Identifier: MIT */
/*
 * A batch of events, or of tasks, that takes long: timers do not wait for it. What nobody
 * waits for makes no round long. And the kernel wakes the loop for the timer that is first by now.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "halted.h"
#include "loopback.h"

enum { MANY = 50, EACH_MS = 2, DUE_MS = 5, STOPPED_MS = 150, TURNS = 3 };

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

/* All are ready at once. */
struct batch {
	struct watch watch[MANY];
	int fd[MANY];
};

static void begin_batch(struct batch *b)
{
	for (int i = 0; i < MANY; i++) {
		b->fd[i] = eventfd(1, EFD_NONBLOCK);
		b->watch[i] = (struct watch){ .fd = -1, .ready = watch_ready };
		assert_int_equal(loop_watch(scene.loop, &b->watch[i], b->fd[i],
					    EPOLLIN), 0);
	}
}

static void end_batch(struct batch *b)
{
	for (int i = 0; i < MANY; i++)
		close(b->fd[i]);
}

static void a_timer_does_not_wait_for_a_batch(void **state)
{
	struct batch batch;

	(void)state;
	begin_batch(&batch);
	assert_timer_in_between();
	end_batch(&batch);
}

/* Who was stopped for longer than a timer waits has what came meanwhile first. */
static void what_came_while_it_was_stopped_counts(void **state)
{
	struct batch batch;

	(void)state;
	begin_batch(&batch);
	usleep(STOPPED_MS * 1000);
	assert_true(run_until(scene.loop, "all of them", all_done, NULL));
	assert_int_equal(scene.done_at_timer, MANY);
	end_batch(&batch);
}

static struct task asked_for;

static void is_stopped(struct task *t)
{
	(void)t;
	loop_after(scene.loop, &asked_for);
	usleep(STOPPED_MS * 1000);
}

static void takes_turns(struct task *t)
{
	if (++scene.done < TURNS)
		loop_after(scene.loop, t);
}

static bool timer_fired(void *arg)
{
	(void)arg;
	return scene.done_at_timer >= 0;
}

/* And what it was about to do, in a few turns. */
static void what_was_asked_for_before_it_was_stopped_counts(void **state)
{
	struct task task;

	(void)state;
	loop_task_init(&task, is_stopped);
	loop_task_init(&asked_for, takes_turns);
	loop_after(scene.loop, &task);
	assert_true(run_until(scene.loop, "the timer", timer_fired, NULL));
	assert_int_equal(scene.done_at_timer, TURNS);
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

/* --- what wakes it --- */

enum { LONG_MS = 60000, SOON_MS = 20 };

static struct {
	struct watch watch;	/* of what is there when the loop first waits */
	struct timer later;
	int64_t begun, fired_at;	/* the scene's timer did */
} wakes;

static void fires_for_good(struct timer *t)
{
	assert_ptr_equal(t, &scene.timer);
	wakes.fired_at = loop_clock();
	loop_stop(scene.loop);
}

static void wake_for(int first_ms, void (*then)(struct watch *w, uint32_t events))
{
	int fd = eventfd(1, EFD_NONBLOCK);

	loop_timer_stop(scene.loop, &scene.timer);
	scene.timer.fire = wakes.later.fire = fires_for_good;
	wakes.watch = (struct watch){ .fd = -1, .ready = then };
	assert_int_equal(loop_watch(scene.loop, &wakes.watch, fd, EPOLLIN), 0);
	wakes.begun = loop_clock();
	assert_int_equal(loop_timer_in(scene.loop, &wakes.later, first_ms * NS_PER_MS), 0);
	assert_int_equal(loop_run(scene.loop), 0);
	loop_timer_stop(scene.loop, &wakes.later);
	close(fd);
}

static void adds_a_sooner_one(struct watch *w, uint32_t events)
{
	(void)events;
	loop_unwatch(scene.loop, w);
	loop_timer_in(scene.loop, &scene.timer, SOON_MS * NS_PER_MS);
}

static void one_that_is_sooner_is_not_late(void **state)
{
	(void)state;
	wake_for(LONG_MS, adds_a_sooner_one);
	assert_true(wakes.fired_at < wakes.begun + LONG_MS / 2 * NS_PER_MS);
}

/* The kernel wakes the loop for the first all the same, and has to be told of the other one then. */
static void stops_it_for_a_later_one(struct watch *w, uint32_t events)
{
	(void)events;
	loop_unwatch(scene.loop, w);
	loop_timer_stop(scene.loop, &wakes.later);
	loop_timer_in(scene.loop, &scene.timer, 3 * SOON_MS * NS_PER_MS);
}

static void one_that_was_stopped_does_not_fire(void **state)
{
	(void)state;
	wake_for(SOON_MS, stops_it_for_a_later_one);
	assert_true(wakes.fired_at >= wakes.begun + 3 * SOON_MS * NS_PER_MS);
	assert_true(wakes.fired_at < wakes.begun + LONG_MS / 2 * NS_PER_MS);
}

/* --- what nobody waits for --- */

enum { LATER = 6, EACH_ROUND = 2 };

static struct {
	struct task every;	/* in each round */
	int rounds;
} watcher;

static void takes_half(struct task *t)
{
	(void)t;
	clock_pass(LOOP_LATER_US * NS_PER_US / EACH_ROUND);
	scene.done++;
}

static void looks(struct task *t)
{
	assert_int_equal(scene.done, EACH_ROUND * watcher.rounds);
	if (scene.done == LATER)
		loop_stop(scene.loop);
	else
		loop_after(scene.loop, t);
	watcher.rounds++;
}

static void what_nobody_waits_for_is_spread(void **state)
{
	struct task task[LATER];

	(void)state;
	loop_timer_stop(scene.loop, &scene.timer);
	for (int i = 0; i < LATER; i++) {
		loop_task_init(&task[i], takes_half);
		loop_later(scene.loop, &task[i]);
		loop_later(scene.loop, &task[i]);
	}
	watcher.rounds = 0;
	loop_task_init(&watcher.every, looks);
	loop_after(scene.loop, &watcher.every);
	clock_halt();
	loop_run(scene.loop);
	clock_go_on();
	assert_int_equal(scene.done, LATER);
	assert_int_equal(watcher.rounds, LATER / EACH_ROUND + 1);
}

/* No task is left behind by a loop that ends. */
static void what_is_left_is_done_at_the_end(void **state)
{
	struct task task[LATER];

	(void)state;
	for (int i = 0; i < LATER; i++) {
		loop_task_init(&task[i], takes_half);
		loop_later(scene.loop, &task[i]);
	}
	loop_task_stop(&task[1]);
	clock_halt();
	run_round(scene.loop);
	clock_go_on();
	assert_int_equal(scene.done, LATER - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_timer_does_not_wait_for_a_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_came_while_it_was_stopped_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_was_asked_for_before_it_was_stopped_counts, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_timer_does_not_wait_for_tasks, setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_that_is_sooner_is_not_late, setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_that_was_stopped_does_not_fire, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_nobody_waits_for_is_spread, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_left_is_done_at_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
