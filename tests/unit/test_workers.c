/* SPDX-License-Identifier: MIT */
/*
 * Who gets the next guest: of two workers with threads of their own the one that was less
 * busy lately. And whether they go on. The clock goes when the test says so; what a thread used is the kernel's word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/log.h"
#include "mux/options/options.h"
#include "rp/options.h"
#include "rp/workers.h"
#include "halted.h"
#include "loopback.h"

enum { HOUR_S = 3600 };

static struct {
	struct options options;
	struct log log;
	struct engine engine;
	struct workers workers;
} here;

/* What keeps a worker's thread busy until it is told to stop. */
static struct {
	struct errand errand;
	atomic_bool stop, stopped;
} work;

static void burn(struct errand *e)
{
	(void)e;
	while (!work.stop)
		;
	work.stopped = true;
}

/* So much of a core, by the kernel's account of that thread. */
static void keep_busy(struct worker *w, int64_t ns)
{
	int64_t before = worker_cpu(w);

	work.stop = work.stopped = false;
	work.errand.run = burn;
	worker_tell(w, &work.errand);
	while (worker_cpu(w) - before < ns)
		usleep(1000);
	work.stop = true;
	while (!work.stopped)
		usleep(1000);
}

static int set_up(void **state)
{
	static const struct entrances *const none[REACH_ENTRANCES];

	(void)state;
	memset(&here, 0, sizeof(here));
	settings_init(&here.options.settings);
	here.options.workers = 2;
	log_init(&here.log, "test", LOG_ERROR);
	assert_int_equal(engine_init(&here.engine, &here.options.settings,
				     &here.log), 0);
	clock_halt();
	assert_int_equal(workers_init(&here.workers, &here.engine,
				      &here.options, none), 0);
	assert_int_equal(workers_start(&here.workers), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	workers_fini(&here.workers);
	engine_fini(&here.engine);
	log_fini(&here.log);
	clock_go_on();
	return 0;
}

/* The first thread's loop has its turn each second. */
static void seconds_pass(unsigned int n)
{
	while (n--) {
		clock_pass(NS_PER_SEC);
		run_round(here.engine.loop);
	}
}

static unsigned int next(void)
{
	return workers_least_busy(&here.workers)->number;
}

static void who_has_fewer_guests_is_next(void **state)
{
	(void)state;
	seconds_pass(2);
	assert_int_equal(next(), 1);
	here.workers.worker[0].guests = 1;
	assert_int_equal(next(), 2);
}

/* Nobody asked for an hour; by the mean of that hour it did nothing. */
static void who_was_idle_for_long_and_works_now_is_busy(void **state)
{
	struct worker *first = &here.workers.worker[0];

	(void)state;
	seconds_pass(HOUR_S);
	keep_busy(first, NS_PER_SEC / 2);
	seconds_pass(1);
	assert_int_equal(next(), 2);
	seconds_pass(1);
	assert_int_equal(next(), 1);
}

static bool all_are_back(void *arg)
{
	(void)arg;
	return !here.workers.sign[0].awaited && !here.workers.sign[1].awaited;
}

static bool all_are_alive(void *arg)
{
	(void)arg;
	return workers_are_alive(&here.workers);
}

/* Until it goes on. The other one's sign comes and goes meanwhile. */
static void one_that_hangs_gives_no_sign_of_life(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(run_rounds(here.engine.loop, "signs of life",
				       all_are_alive, NULL));
	assert_true(run_rounds(here.engine.loop, "the last of them",
			       all_are_back, NULL));
	work.stop = work.stopped = false;
	work.errand.run = burn;
	worker_tell(&here.workers.worker[1], &work.errand);
	assert_true(all_are_alive(NULL));	/* as of before */
	for (int i = 0; i < 100; i++) {
		usleep(1000);
		run_round(here.engine.loop);
		assert_false(all_are_alive(NULL));
	}
	work.stop = true;
	assert_true(run_rounds(here.engine.loop, "a sign of life",
			       all_are_alive, NULL));
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(who_has_fewer_guests_is_next),
		test(who_was_idle_for_long_and_works_now_is_busy),
		test(one_that_hangs_gives_no_sign_of_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
