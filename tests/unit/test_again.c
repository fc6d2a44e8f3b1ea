/* SPDX-License-Identifier: MIT */
/*
 * What is sent again beside what is new: it goes ahead of connections that take turns,
 * and behind those that go ahead of turns, as long as they live on a credit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/path/paths.h"
#include "mux/sched/next.h"
#include "mux/wire/run.h"
#include "sched_scene.h"

enum { LEN = 1400, YOUNG = 64 << 10 };

struct beside {
	struct scene scene;
	struct paths paths;
	struct settings settings;
	struct run run;		/* to be sent again, and over and over */
	bool full;
};

static void begin(struct beside *b, const struct conn_policy *policy)
{
	memset(b, 0, sizeof(*b));
	b->settings.late = true;
	scene_init(&b->scene, policy, &sched_soonest);
	b->scene.now = NS_PER_SEC;
	for (unsigned int i = 0; i < SCENE_PIPES; i++) {
		scene_pipe(&b->scene, i, &b->settings, 20);
		paths_add(&b->paths, 0, &b->scene.pipe[i]);
	}
	aggregate_init(&b->paths.path[0].aggregate, AGGREGATE_OFF, 0,
		       b->scene.now);
	b->run.len = LEN;
}

static struct next decide(struct beside *b)
{
	struct view view = {
		.sched = &b->scene.s, .paths = &b->paths,
		.now = b->scene.now, .again = { &b->run }, .full = b->full,
	};

	return sched_next(&view);
}

/* What is decided is done: whose connection sent, or -1 for the run again. */
static int go_on(struct beside *b)
{
	const struct conn_policy *policy = b->scene.s.conns;
	struct next next = decide(b);
	int i;

	if (next.act == NEXT_AGAIN) {
		assert_ptr_equal(next.again, &b->run);
		if (policy->sent_again)
			policy->sent_again(&b->scene.s, b->run.len);
		return -1;
	}
	assert_int_equal(next.act, NEXT_SEND);
	assert_true(next.ahead);
	i = (int)(next.conn - b->scene.conn);
	b->scene.sent[i] += LEN;
	policy->sent(&b->scene.s, next.conn, LEN);
	return i;
}

/* Has sent a lot, and has more. */
static void be_bulk(struct scene *scene, unsigned int i)
{
	scene_ready(scene, i);
	while (scene->sent[i] < 4 * YOUNG)
		scene_send(scene, 0, MSS);
}

static void it_is_the_turn_of_bulks(void **state)
{
	struct beside b;

	(void)state;
	begin(&b, &sched_las);
	assert_int_equal(go_on(&b), -1);
	be_bulk(&b.scene, 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(go_on(&b), -1);
}

static void a_short_answer_goes_ahead_of_it(void **state)
{
	struct beside b;

	(void)state;
	begin(&b, &sched_las);
	be_bulk(&b.scene, 0);
	scene_ready(&b.scene, 1);
	assert_int_equal(go_on(&b), 1);
	scene_silent(&b.scene, 1);
	assert_int_equal(go_on(&b), -1);
}

static void but_not_of_what_went_ahead_itself(void **state)
{
	struct beside b;

	(void)state;
	begin(&b, &sched_las);
	scene_ready(&b.scene, 1);
	b.run.ahead = true;
	assert_int_equal(go_on(&b), -1);
}

/* Who waits for an acknowledgement sends nothing that is new. */
static void nor_where_nothing_new_may_be_sent(void **state)
{
	struct beside b;

	(void)state;
	begin(&b, &sched_las);
	scene_ready(&b.scene, 1);
	b.full = true;
	assert_int_equal(go_on(&b), -1);
}

/* Whoever opens connection after connection would have it wait for good. */
static void it_has_a_quarter_at_least(void **state)
{
	unsigned int again = 0, rounds = 8000;
	struct beside b;

	(void)state;
	begin(&b, &sched_las);
	scene_ready(&b.scene, 1);
	for (unsigned int i = 0; i < rounds; i++) {
		if (go_on(&b) < 0) {
			again++;
			continue;
		}
		if (b.scene.sent[1] < YOUNG / 2)
			continue;
		b.scene.sent[1] = 0;	/* it is another connection now */
		scene_silent(&b.scene, 1);
		b.scene.conn[1].served = 0;
		scene_ready(&b.scene, 1);
	}
	/* A credit of 1 MiB was there at the beginning: 750 messages. */
	assert_in_range(again, (rounds - 800) / 4 - 50, rounds / 3);
}

/* Small pieces of an old connection go ahead of turns, for a quantum in each round. */
static void by_drr_a_quantum_goes_ahead(void **state)
{
	struct beside b;
	int ahead = 0;

	(void)state;
	begin(&b, &sched_drr);
	scene_ready(&b.scene, 2);
	for (int i = 0; i < 100; i++)
		ahead += go_on(&b) == 2;
	assert_in_range(ahead, 1, QUANTUM / LEN + 1);
}

static void by_fifo_nobody_goes_ahead(void **state)
{
	struct beside b;

	(void)state;
	begin(&b, &sched_fifo);
	scene_ready(&b.scene, 2);
	for (int i = 0; i < 100; i++)
		assert_int_equal(go_on(&b), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_turn_of_bulks),
		cmocka_unit_test(a_short_answer_goes_ahead_of_it),
		cmocka_unit_test(but_not_of_what_went_ahead_itself),
		cmocka_unit_test(nor_where_nothing_new_may_be_sent),
		cmocka_unit_test(it_has_a_quarter_at_least),
		cmocka_unit_test(by_drr_a_quantum_goes_ahead),
		cmocka_unit_test(by_fifo_nobody_goes_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
