/* SPDX-License-Identifier: MIT */
/*
 * Errands between threads, and halts: two threads with loops of their own that do something
 * all the time, and the test's, which tells them, and looks at what they did.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/base/halt.h"
#include "mux/base/inbox.h"
#include "mux/base/loop.h"

enum { THREADS = 2, ERRANDS = 1000, HALTS = 300 };

struct busy {			/* one thread */
	pthread_t thread;
	struct loop *loop;
	struct inbox inbox;
	struct halt_place place;
	struct task step;
	struct errand last;
	/* Of no type that threads may share: whoever looks has to have halted it. */
	unsigned int steps, twice;
	unsigned int done;
	bool in_order;
};

struct counted {
	struct errand errand;
	struct busy *to;
	unsigned int number;
};

static struct busy busy[THREADS];
static struct halt halt;
static struct counted errands[THREADS][ERRANDS];

/* Never seen between the two. */
static void step(struct task *t)
{
	struct busy *b = container_of(t, struct busy, step);

	b->steps++;
	b->twice = 2 * b->steps;
	loop_after(b->loop, t);
}

static void *work(void *arg)
{
	struct busy *b = arg;

	loop_run(b->loop);
	return NULL;
}

static void stop(struct errand *e)
{
	struct busy *b = container_of(e, struct busy, last);

	loop_task_stop(&b->step);
	loop_stop(b->loop);
}

static int set_up(void **state)
{
	unsigned int i;

	(void)state;
	halt_init(&halt);
	for (i = 0; i < THREADS; i++) {
		struct busy *b = &busy[i];

		*b = (struct busy){ .loop = loop_new(), .in_order = true };
		assert_non_null(b->loop);
		assert_int_equal(inbox_open(&b->inbox, b->loop), 0);
		loop_task_init(&b->step, step);
		loop_after(b->loop, &b->step);
		halt_add(&halt, &b->place, &b->inbox);
		assert_int_equal(pthread_create(&b->thread, NULL, work, b), 0);
	}
	return 0;
}

static int tear_down(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < THREADS; i++) {
		struct busy *b = &busy[i];

		b->last.run = stop;
		inbox_post(&b->inbox, &b->last);
		pthread_join(b->thread, NULL);
		inbox_close(&b->inbox);
		loop_free(b->loop);
	}
	halt_clear(&halt);
	halt_fini(&halt);
	return 0;
}

static void run_counted(struct errand *e)
{
	struct counted *c = container_of(e, struct counted, errand);

	c->to->in_order &= c->to->done++ == c->number;
}

static void errands_are_run_in_order(void **state)
{
	unsigned int i, n;

	(void)state;
	for (n = 0; n < ERRANDS; n++) {
		for (i = 0; i < THREADS; i++) {
			errands[i][n] = (struct counted){
				{ .run = run_counted }, &busy[i], n
			};
			inbox_post(&busy[i].inbox, &errands[i][n].errand);
		}
	}
	halt_begin(&halt);	/* its own errands are behind these */
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(busy[i].done, ERRANDS);
		assert_true(busy[i].in_order);
	}
	halt_end(&halt);
}

static void who_has_halted_does_nothing(void **state)
{
	unsigned int before[THREADS] = { 0 }, i, n;

	(void)state;
	for (n = 0; n < HALTS; n++) {
		halt_begin(&halt);
		for (i = 0; i < THREADS; i++) {
			assert_int_equal(busy[i].twice, 2 * busy[i].steps);
			assert_true(busy[i].steps >= before[i]);
			before[i] = busy[i].steps;
		}
		halt_end(&halt);
	}
	for (i = 0; i < THREADS; i++)
		assert_true(before[i] > 0);
}

static void a_halt_within_a_halt_is_none(void **state)
{
	unsigned int steps, n;

	(void)state;
	halt_begin(&halt);
	steps = busy[0].steps;
	for (n = 0; n < 3; n++) {
		halt_begin(&halt);
		halt_end(&halt);
		assert_int_equal(busy[0].steps, steps);
	}
	busy[0].steps = 0;	/* as who halted may be changed */
	busy[0].twice = 0;
	halt_end(&halt);
	halt_begin(&halt);
	assert_int_equal(busy[0].twice, 2 * busy[0].steps);
	halt_end(&halt);
}

static void who_is_alone_halts_nobody(void **state)
{
	struct halt none;

	(void)state;
	halt_begin(NULL);
	halt_end(NULL);
	halt_init(&none);
	halt_begin(&none);
	halt_end(&none);
	halt_fini(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(errands_are_run_in_order,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_has_halted_does_nothing,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_halt_within_a_halt_is_none,
						set_up, tear_down),
		cmocka_unit_test(who_is_alone_halts_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
