/* SPDX-License-Identifier: MIT */
/*
 * Several paths: what each has of its own, what they share, and what is decided over
 * the pipes of all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/path/paths.h"
#include "mux/sched/next.h"
#include "mux/sched/thin.h"
#include "two_scene.h"

enum { MIB = 1 << 20 };

/* They could take more, but hold together what they may. */
static void load(struct two *w, unsigned int number)
{
	w->paths.path[number].pipes[0]->info.in_flight = LIMIT;
}

static unsigned int number_of(struct two *w, const struct next *next)
{
	assert_int_equal(next->act, NEXT_SEND);
	return paths_number(&w->paths, next->pipe);
}

static void each_pipe_is_on_its_path(void **state)
{
	struct two w;

	(void)state;
	two_init(&w, &sched_soonest);
	assert_int_equal(w.paths.npaths, 2);
	assert_int_equal(w.paths.npipes, SCENE_PIPES);
	assert_int_equal(w.paths.path[NEAR].npipes, NEAR_PIPES);
	assert_int_equal(w.paths.path[FAR].npipes, SCENE_PIPES - NEAR_PIPES);
	assert_int_equal(paths_number(&w.paths, &w.scene.pipe[1]), NEAR);
	assert_int_equal(paths_number(&w.paths, &w.scene.pipe[2]), FAR);
	for (unsigned int i = 1; i < SCENE_PIPES; i++)
		assert_int_not_equal(w.scene.pipe[i].serial,
				     w.scene.pipe[i - 1].serial);
	paths_remove(&w.paths, &w.scene.pipe[1]);
	assert_int_equal(w.paths.path[NEAR].npipes, 1);
	assert_int_equal(w.paths.npipes, SCENE_PIPES - 1);
	assert_ptr_equal(w.paths.pipes[1], &w.scene.pipe[2]);
	assert_int_equal(w.paths.npaths, 2);
}

static void what_one_holds_the_other_does_not(void **state)
{
	struct two w;
	size_t before;

	(void)state;
	two_init(&w, &sched_soonest);
	load(&w, NEAR);
	w.scene.pipe[2].info.in_flight = 5000;
	assert_int_equal(path_held(&w.paths.path[NEAR]), LIMIT);
	assert_int_equal(path_held(&w.paths.path[FAR]), 5000);
	paths_send(&w.paths, &w.scene.pipe[2], 1000, w.scene.now, &before);
	assert_int_equal(before, 5000);
	assert_int_equal(w.paths.path[NEAR].written, 0);
	assert_int_equal(w.paths.path[FAR].written, 1000);
	assert_int_equal(path_room(&w.paths.path[NEAR], w.scene.now), 0);
	assert_int_equal(path_room(&w.paths.path[FAR], w.scene.now),
			 LIMIT - 5000);
}

/* It would make the receiver hold what came by the other one. */
static void one_that_lags_holds_up_all_paths(void **state)
{
	struct two w;
	size_t before;

	(void)state;
	two_init(&w, &sched_soonest);
	paths_send(&w.paths, &w.scene.pipe[4], 5000, 1, &before);
	w.scene.pipe[4].tx_bytes = w.scene.pipe[4].info.in_flight = 5000;
	for (unsigned int i = 0; i < 20; i++) {
		paths_send(&w.paths, &w.scene.pipe[0], MIB, 1, &before);
		w.scene.pipe[0].tx_bytes += MIB;
	}
	assert_true(paths_are_spread(&w.paths, w.scene.now));
	scene_ready(&w.scene, 0);
	assert_int_equal(sched_next(&w.view).wait, WAIT_FOR_OTHERS);
	w.scene.pipe[4].info.in_flight = 0;
	assert_false(paths_are_spread(&w.paths, w.scene.now));
}

static void the_round_trip_is_that_of_the_nearest_known(void **state)
{
	struct two w;

	(void)state;
	two_init(&w, &sched_soonest);
	w.paths.path[FAR].aggregate.base = 180e6;
	w.paths.path[NEAR].aggregate.base = 18e6;
	assert_int_equal(paths_round_trip(&w.paths), 18 * NS_PER_MS);
	for (unsigned int i = 0; i < NEAR_PIPES; i++)
		paths_remove(&w.paths, &w.scene.pipe[i]);
	w.paths.path[NEAR].aggregate.base = 0;
	assert_int_equal(paths_round_trip(&w.paths), 180 * NS_PER_MS);
}

/* --aggregate off and dswa know no base, but the kernel knows the least round trip. */
static void without_a_law_the_round_trip_is_the_kernels(void **state)
{
	struct two w;

	(void)state;
	two_init(&w, &sched_soonest);
	assert_int_equal(paths_round_trip(&w.paths), 20 * NS_PER_MS);
	for (unsigned int i = 0; i < NEAR_PIPES; i++)
		w.scene.pipe[i].info.rttmin_ms = 0;
	assert_int_equal(paths_round_trip(&w.paths), 200 * NS_PER_MS);
}

/* A bulk that pauses for less than that does not go ahead of the others again. */
static void a_pause_within_the_round_trip_makes_nobody_young(void **state)
{
	struct two w;

	(void)state;
	two_init(&w, &sched_soonest);
	for (unsigned int i = 0; i < NEAR_PIPES; i++)
		paths_remove(&w.paths, &w.scene.pipe[i]);
	w.scene.s.conns = &sched_las;
	scene_ready(&w.scene, 0);
	w.scene.conn[0].served = MIB;
	scene_silent(&w.scene, 0);
	w.view.now = w.scene.now += 150 * NS_PER_MS;
	sched_next(&w.view);
	scene_ready(&w.scene, 0);
	assert_int_equal(w.scene.conn[0].served, MIB);
	scene_silent(&w.scene, 0);
	w.scene.now += 200 * NS_PER_MS;
	scene_ready(&w.scene, 0);
	assert_int_equal(w.scene.conn[0].served, 0);
}

static void the_near_path_goes_first_until_it_is_full(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	two_init(&w, &sched_soonest);
	scene_ready(&w.scene, 0);
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), NEAR);
	two_fill(&w, NEAR);
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), FAR);
}

static void the_limit_of_one_is_not_in_the_way_of_the_other(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	two_init(&w, &sched_soonest);
	scene_ready(&w.scene, 0);
	load(&w, NEAR);
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), FAR);
	assert_in_range(next.bytes, 1, LIMIT);
	w.scene.pipe[3].info.in_flight = LIMIT - 2000;
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), FAR);
	assert_in_range(next.bytes, 1, 2000);
	load(&w, FAR);
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_WAIT);
	assert_int_equal(next.wait, WAIT_FOR_LIMIT);
	assert_false(next.pipes);
	assert_int_equal(w.paths.path[NEAR].aggregate.waits, 3);
	assert_int_equal(w.paths.path[FAR].aggregate.waits, 1);
}

/* An acknowledgement on the one or room in a socket of the other ends the wait. */
static void a_limit_here_and_full_pipes_there_are_waited_for(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	two_init(&w, &sched_soonest);
	scene_ready(&w.scene, 0);
	load(&w, FAR);
	two_fill(&w, NEAR);
	next = sched_next(&w.view);
	assert_int_equal(next.wait, WAIT_FOR_LIMIT);
	assert_true(next.pipes);
	assert_true(next.until < NEXT_NEVER);
	two_fill(&w, FAR);
	next = sched_next(&w.view);
	assert_int_equal(next.wait, WAIT_FOR_PIPES);
	assert_int_equal(next.until, NEXT_NEVER);
}

/* The only pipe that may carry it is on the path whose limit is in the way. */
static void a_policy_that_leaves_nothing_waits_for_the_limit(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	two_init(&w, &sched_fixed);
	scene_ready(&w.scene, 0);	/* id 1: pipe 1 */
	load(&w, NEAR);
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_WAIT);
	assert_int_equal(next.wait, WAIT_FOR_LIMIT);
	assert_true(next.pipes);
	w.scene.pipe[0].info.in_flight = 0;
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), NEAR);
}

/* Its last message went on pipe 4 and is not acknowledged: so there it stays. */
static void begin_with_a_thin_one_on_the_far_path(struct two *w)
{
	struct pipe *far = &w->scene.pipe[4];

	two_init(w, &sched_soonest);
	thin_sent(&w->paths, &w->scene.conn[0], far, 50);
	far->tx_bytes = far->info.in_flight = 50;
	scene_ready(&w->scene, 0);
	assert_ptr_equal(sched_next(&w->view).pipe, far);
}

static void a_thin_connection_leaves_a_path_at_its_limit(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	begin_with_a_thin_one_on_the_far_path(&w);
	w.scene.pipe[3].info.in_flight = LIMIT;
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), NEAR);
}

static void scattered_it_goes_where_the_policy_says(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	begin_with_a_thin_one_on_the_far_path(&w);
	w.view.scatters = true;
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), NEAR);
}

static void copies_and_datagrams_keep_to_the_limit_of_their_path(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	two_init(&w, &sched_soonest);
	for (unsigned int i = 0; i < 2; i++) {
		w.view.tail = i == 0;
		w.view.datagram = i == 1;
		w.scene.pipe[0].info.in_flight = 0;
		next = sched_next(&w.view);
		assert_int_not_equal(next.act, NEXT_WAIT);
		assert_int_equal(paths_number(&w.paths, next.pipe), NEAR);
		/* A quarter beyond it may go ahead, and no more. */
		w.scene.pipe[0].info.in_flight = LIMIT + LIMIT / 4;
		next = sched_next(&w.view);
		assert_int_not_equal(next.act, NEXT_WAIT);
		assert_int_equal(paths_number(&w.paths, next.pipe), FAR);
	}
}

/* Also where the limit holds the bulk up; but it does not wait with one whose pipe takes nothing. */
static void datagrams_go_ahead_of_a_bulk(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	two_init(&w, &sched_soonest);
	scene_ready(&w.scene, 0);
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), NEAR);
	w.view.datagram = true;
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_DATAGRAMS);
	assert_int_equal(paths_number(&w.paths, next.pipe), NEAR);
	assert_true(next.bytes > 0);
	w.view.datagram_on = &w.scene.pipe[4];
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_DATAGRAMS);
	assert_ptr_equal(next.pipe, &w.scene.pipe[4]);
	load(&w, NEAR);
	load(&w, FAR);
	next = sched_next(&w.view);
	assert_int_equal(next.act, NEXT_DATAGRAMS);
	w.scene.pipe[0].info.in_flight = 0;
	w.scene.pipe[4].info.unsent = w.scene.pipe[4].allowance;
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), NEAR);
}

static void of_two_that_are_as_near_the_cheaper_goes_first(void **state)
{
	struct two w;
	struct next next;

	(void)state;
	two_init(&w, &sched_soonest);
	for (unsigned int i = 0; i < SCENE_PIPES; i++)
		w.scene.pipe[i].info.rttmin_ms = 20;
	w.paths.path[NEAR].cost = 7;
	scene_ready(&w.scene, 0);
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), FAR);
	w.paths.path[FAR].cost = 8;
	next = sched_next(&w.view);
	assert_int_equal(number_of(&w, &next), NEAR);
}

static void a_backup_rests_while_another_lives(void **state)
{
	const struct path *near, *far;
	struct two w;

	(void)state;
	two_init(&w, &sched_soonest);
	near = &w.paths.path[NEAR];
	far = &w.paths.path[FAR];
	assert_false(paths_stands_by(&w.paths, near));
	assert_false(paths_stands_by(&w.paths, far));
	w.paths.path[FAR].backup = true;
	assert_false(paths_stands_by(&w.paths, near));
	assert_true(paths_stands_by(&w.paths, far));
	w.scene.pipe[0].relieved = true;
	assert_true(paths_stands_by(&w.paths, far));
	w.scene.pipe[1].relieved = true;
	assert_false(paths_stands_by(&w.paths, far));
	paths_remove(&w.paths, &w.scene.pipe[0]);
	paths_remove(&w.paths, &w.scene.pipe[1]);
	assert_false(paths_stands_by(&w.paths, far));
	w.paths.path[FAR].off = true;
	assert_true(paths_stands_by(&w.paths, far));
}

static void the_backup_of_one_that_is_off_is_used(void **state)
{
	struct two w;

	(void)state;
	two_init(&w, &sched_soonest);
	w.paths.path[FAR].backup = w.paths.path[NEAR].off = true;
	assert_true(paths_stands_by(&w.paths, &w.paths.path[NEAR]));
	assert_false(paths_stands_by(&w.paths, &w.paths.path[FAR]));
	w.paths.path[NEAR].off = false;
	w.paths.path[NEAR].backup = true;
	assert_false(paths_stands_by(&w.paths, &w.paths.path[NEAR]));
	assert_false(paths_stands_by(&w.paths, &w.paths.path[FAR]));
}

/* --- round trips by path --- */

static void the_farthest_path_in_use_counts(void **state)
{
	struct two w;

	(void)state;
	two_init(&w, &sched_soonest);
	assert_int_equal(paths_farthest(&w.paths), 200 * NS_PER_MS);
	/* By its quickest pipe: another one may have a queue of its own. */
	w.paths.path[FAR].pipes[0]->info.rtt_ms = 900;
	assert_int_equal(paths_farthest(&w.paths), 200 * NS_PER_MS);
	w.paths.path[FAR].backup = true;
	assert_int_equal(paths_farthest(&w.paths), 20 * NS_PER_MS);
	w.paths.path[NEAR].off = true;
	assert_int_equal(paths_farthest(&w.paths), 200 * NS_PER_MS);
}

static void a_path_is_nearer_by_more_than_chance(void **state)
{
	struct two w;
	struct pipe *near, *far;

	(void)state;
	two_init(&w, &sched_soonest);
	near = w.paths.path[NEAR].pipes[1];
	far = w.paths.path[FAR].pipes[0];
	assert_true(paths_is_nearer(near, far));
	assert_false(paths_is_nearer(far, near));
	assert_false(paths_is_nearer(near, w.paths.path[NEAR].pipes[0]));
	for (unsigned int i = 0; i < w.paths.path[NEAR].npipes; i++)
		w.paths.path[NEAR].pipes[i]->info.rttmin_ms = 180;
	assert_false(paths_is_nearer(near, far));
	assert_false(paths_is_nearer(far, near));
	w.paths.path[NEAR].pipes[0]->info.rttmin_ms = 170;
	assert_true(paths_is_nearer(near, far));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pipe_is_on_its_path),
		cmocka_unit_test(what_one_holds_the_other_does_not),
		cmocka_unit_test(one_that_lags_holds_up_all_paths),
		cmocka_unit_test(the_round_trip_is_that_of_the_nearest_known),
		cmocka_unit_test(without_a_law_the_round_trip_is_the_kernels),
		cmocka_unit_test(a_pause_within_the_round_trip_makes_nobody_young),
		cmocka_unit_test(the_near_path_goes_first_until_it_is_full),
		cmocka_unit_test(the_limit_of_one_is_not_in_the_way_of_the_other),
		cmocka_unit_test(a_limit_here_and_full_pipes_there_are_waited_for),
		cmocka_unit_test(a_policy_that_leaves_nothing_waits_for_the_limit),
		cmocka_unit_test(a_thin_connection_leaves_a_path_at_its_limit),
		cmocka_unit_test(scattered_it_goes_where_the_policy_says),
		cmocka_unit_test(copies_and_datagrams_keep_to_the_limit_of_their_path),
		cmocka_unit_test(datagrams_go_ahead_of_a_bulk),
		cmocka_unit_test(of_two_that_are_as_near_the_cheaper_goes_first),
		cmocka_unit_test(a_backup_rests_while_another_lives),
		cmocka_unit_test(the_backup_of_one_that_is_off_is_used),
		cmocka_unit_test(the_farthest_path_in_use_counts),
		cmocka_unit_test(a_path_is_nearer_by_more_than_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
