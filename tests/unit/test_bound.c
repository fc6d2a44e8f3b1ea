/* SPDX-License-Identifier: MIT */
/*
 * Connections that are bound to some paths: their bytes go over no other one, new or again, and
 * while they wait nobody else does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/path/paths.h"
#include "mux/sched/next.h"
#include "mux/sched/thin.h"
#include "mux/wire/run.h"
#include "two_scene.h"

enum { ON_NEAR = 1 << NEAR, ON_FAR = 1 << FAR };
enum { BOUND, FREE };	/* connections */

static void begin(struct two *w, const struct pipe_policy *pipes,
		  const struct path_policy *paths)
{
	two_init(w, pipes);
	sched_set_paths(&w->scene.s, paths, NEAR, 0.5);
}

static void bound_to(struct two *w, uint8_t paths)
{
	w->scene.conn[BOUND].paths = paths;
	w->scene.s.path.bound = true;
}

static void lose(struct two *w, unsigned int number)
{
	struct path *path = &w->paths.path[number];

	while (path->npipes)
		paths_remove(&w->paths, path->pipes[0]);
}

static void sends(struct two *w, unsigned int conn, unsigned int number)
{
	struct next next = sched_next(&w->view);

	assert_int_equal(next.act, NEXT_SEND);
	assert_ptr_equal(next.conn, &w->scene.conn[conn]);
	assert_int_equal(paths_number(&w->paths, next.pipe), number);
}

static void it_goes_over_its_path_alone(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	begin(&w, &sched_soonest, &path_soonest);
	bound_to(&w, ON_FAR);
	scene_ready(&w.scene, BOUND);
	sends(&w, BOUND, FAR);
	two_fill(&w, FAR);
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_WAIT);
	assert_int_equal(next.wait, WAIT_FOR_PIPES);
	scene_ready(&w.scene, FREE);
	sends(&w, FREE, NEAR);
	bound_to(&w, ON_NEAR | ON_FAR);
	scene_silent(&w.scene, FREE);
	sends(&w, BOUND, NEAR);
}

/* What the near path carries of a connection that goes over both is there for ever. */
static void twins_leave_it_every_other_time(void **state)
{
	unsigned int twins = 0, mine = 0;
	struct two w;

	(void)state;
	begin(&w, &sched_soonest, &path_soonest);
	bound_to(&w, ON_FAR);
	two_fill(&w, NEAR);
	scene_ready(&w.scene, BOUND);
	w.view.twins = true;
	w.view.twin[FAR] = (struct twin){ .there = true, .ahead = true };
	for (int i = 0; i < 20; i++) {
		struct next next = sched_next(&w.view);

		twins += next.act == NEXT_TWIN;
		mine += next.act == NEXT_SEND && next.conn == &w.scene.conn[BOUND];
		assert_int_equal(paths_number(&w.paths, next.pipe), FAR);
	}
	assert_int_equal(twins, 10);
	assert_int_equal(mine, 10);
	/* By the policy of copies all that is new waits for its twins. */
	sched_set_paths(&w.scene.s, &path_copies, NEAR, 0.5);
	for (int i = 0; i < 20; i++)
		assert_int_equal(sched_next(&w.view).act, NEXT_TWIN);
}

/* The near path's limit stays as it is: it was not in anybody's way. */
static void it_waits_for_a_path_that_is_gone(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	begin(&w, &sched_soonest, &path_soonest);
	bound_to(&w, ON_FAR);
	scene_ready(&w.scene, BOUND);
	lose(&w, FAR);
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_WAIT);
	assert_int_equal(next.until, NEXT_NEVER);
	assert_int_equal(w.paths.path[NEAR].aggregate.waits, 0);
	scene_ready(&w.scene, FREE);
	sends(&w, FREE, NEAR);
	scene_silent(&w.scene, FREE);
	two_add(&w, NEAR_PIPES);
	sends(&w, BOUND, FAR);
}

/* A session may have had no pipe on it yet. */
static void so_it_does_for_one_that_never_was(void **state)
{
	struct two w;

	(void)state;
	begin(&w, &sched_soonest, &path_soonest);
	lose(&w, FAR);
	w.paths.npaths = 1;
	bound_to(&w, ON_FAR);
	scene_ready(&w.scene, BOUND);
	assert_int_equal(sched_next(&w.view).act, NEXT_WAIT);
	bound_to(&w, ON_NEAR);
	sends(&w, BOUND, NEAR);
}

static void what_goes_again_keeps_to_it(void **state)
{
	struct run run = { .len = 100, .paths = ON_FAR };
	struct two w;
	struct next next;

	(void)state;
	begin(&w, &sched_soonest, &path_soonest);
	bound_to(&w, ON_FAR);
	w.view.again[FAR] = &run;
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_AGAIN);
	assert_int_equal(paths_number(&w.paths, next.pipe), FAR);
	/* While it waits others send, and where nobody does it is no limit's fault. */
	lose(&w, FAR);
	scene_ready(&w.scene, FREE);
	sends(&w, FREE, NEAR);
	w.view.full = true;
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_WAIT);
	assert_int_equal(next.until, NEXT_NEVER);
}

static void a_copy_keeps_to_it(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	begin(&w, &sched_soonest, &path_soonest);
	w.view.tail = true;
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_TAIL);
	assert_int_equal(paths_number(&w.paths, next.pipe), NEAR);
	w.view.tail_paths = ON_FAR;
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_TAIL);
	assert_int_equal(paths_number(&w.paths, next.pipe), FAR);
	two_fill(&w, FAR);
	assert_int_equal(sched_next(&w.view).act, NEXT_WAIT);
}

/* It would stay on the pipe that has its last message. */
static void a_thin_one_leaves_a_path_that_is_its_no_more(void **state)
{
	struct conn *c;
	struct two w;

	(void)state;
	begin(&w, &sched_soonest, &path_soonest);
	c = &w.scene.conn[BOUND];
	thin_sent(&w.paths, c, &w.scene.pipe[4], 50);
	w.scene.pipe[4].tx_bytes = w.scene.pipe[4].info.in_flight = 50;
	scene_ready(&w.scene, BOUND);
	sends(&w, BOUND, FAR);
	bound_to(&w, ON_NEAR);
	sends(&w, BOUND, NEAR);
}

/* The policy would use the near path alone, or keep so few bytes for it. */
static void a_policy_chooses_among_its_paths(void **state)
{
	const struct path_policy *const policies[] = {
		&path_one, &path_ecf, &path_txdelay, &path_minrtt, &path_rr,
		&path_split,
	};
	struct two w;

	(void)state;
	for (unsigned int i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
		begin(&w, &sched_soonest, policies[i]);
		w.scene.outlook[BOUND].ready_to = 1000;
		w.scene.outlook[BOUND].brim = 100000;
		bound_to(&w, ON_FAR);
		scene_ready(&w.scene, BOUND);
		sends(&w, BOUND, FAR);
		bound_to(&w, ON_NEAR);
		sends(&w, BOUND, NEAR);
	}
	begin(&w, &sched_soonest, &path_one);
	bound_to(&w, ON_NEAR | ON_FAR);
	scene_ready(&w.scene, BOUND);
	two_fill(&w, NEAR);
	assert_int_equal(sched_next(&w.view).act, NEXT_WAIT);
	w.scene.conn[BOUND].paths = ON_FAR;
	scene_ready(&w.scene, FREE);
	sends(&w, BOUND, FAR);
	scene_silent(&w.scene, BOUND);
	assert_int_equal(sched_next(&w.view).act, NEXT_WAIT);
}

/* Its pipe may be on another path, and what comes from elsewhere shall not stop it. */
static void who_stays_on_one_pipe_is_bound_to_nothing_else(void **state)
{
	struct two w;

	(void)state;
	begin(&w, &sched_fixed, &path_soonest);
	bound_to(&w, ON_FAR);
	scene_ready(&w.scene, BOUND);	/* id 1: pipe 1 */
	sends(&w, BOUND, NEAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_goes_over_its_path_alone),
		cmocka_unit_test(twins_leave_it_every_other_time),
		cmocka_unit_test(it_waits_for_a_path_that_is_gone),
		cmocka_unit_test(so_it_does_for_one_that_never_was),
		cmocka_unit_test(what_goes_again_keeps_to_it),
		cmocka_unit_test(a_copy_keeps_to_it),
		cmocka_unit_test(a_thin_one_leaves_a_path_that_is_its_no_more),
		cmocka_unit_test(a_policy_chooses_among_its_paths),
		cmocka_unit_test(who_stays_on_one_pipe_is_bound_to_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
