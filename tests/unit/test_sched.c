/* SPDX-License-Identifier: MIT */
/*
 * The policies, played without a session: connections that become ready, send
 * and fall silent as chance will have it, pipes whose figures are set by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "mux/pipe/pipe.h"
#include "mux/sched/sched.h"
#include "random.h"
#include "sched_scene.h"

/* --- names --- */

static void policies_are_found_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(conn_policies[0], &sched_las);
	assert_ptr_equal(pipe_policies[0], &sched_soonest);
	for (int i = 0; conn_policies[i]; i++) {
		const struct conn_policy *p = conn_policies[i];

		assert_ptr_equal(conn_policy_named(p->name), p);
		assert_true(*p->summary);
	}
	for (int i = 0; pipe_policies[i]; i++) {
		const struct pipe_policy *p = pipe_policies[i];

		assert_ptr_equal(pipe_policy_named(p->name), p);
		assert_true(*p->summary);
	}
	assert_null(conn_policy_named("least"));
	assert_null(pipe_policy_named("drr"));
	assert_null(pipe_policy_named(""));
}

/* --- pipes --- */

static unsigned int pick(struct scene *scene, unsigned int n)
{
	unsigned int at = scene->s.pipes->pick(&scene->s, scene->all, n);

	assert_in_range(at, 0, n - 1);
	return scene->all[at]->index;
}

static void least_goes_by_unsent_then_by_in_flight(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_least);
	assert_int_equal(pick(&scene, SCENE_PIPES), 0);
	scene.pipe[0].info.in_flight = 1;
	assert_int_equal(pick(&scene, SCENE_PIPES), 1);
	for (int i = 0; i < SCENE_PIPES; i++)
		scene.pipe[i].info.unsent = 100;
	scene.pipe[3].info.unsent = 99;
	scene.pipe[3].info.in_flight = 1000000;
	assert_int_equal(pick(&scene, SCENE_PIPES), 3);
	assert_int_equal(pick(&scene, 3), 1);
}

/* Ten segments of window, 50 ms away. */
static void open_paths(struct scene *scene)
{
	for (int i = 0; i < SCENE_PIPES; i++)
		scene->pipe[i].info = (struct pipe_info){
			.mss = 1448, .cwnd = 10, .rtt_ms = 50, .rttmin_ms = 50,
		};
}

static void soonest_goes_by_the_window_then_by_the_path(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_soonest);
	open_paths(&scene);
	assert_int_equal(pick(&scene, SCENE_PIPES), 0);
	/* Where a window is open it leaves at once, however much is on its way. */
	for (int i = 0; i < SCENE_PIPES; i++)
		scene.pipe[i].info.in_flight = 10 * 1448;
	scene.pipe[3].info.in_flight = 9 * 1448;
	assert_int_equal(pick(&scene, SCENE_PIPES), 3);
	/* It counts segments: one of 20 bytes takes as much of it as a full one. */
	scene.pipe[3].info.in_flight += 20;
	scene.pipe[3].info.unfilled = 1448 - 20;
	scene.pipe[1].info.in_flight = 9 * 1448;
	assert_int_equal(pick(&scene, SCENE_PIPES), 1);
	scene.pipe[1].info.in_flight += 1448;
	scene.pipe[3].info.unfilled = 0;
	/* Where none is, what is ahead of it, a window a round trip. */
	scene.pipe[3].info.in_flight = 10 * 1448;
	for (int i = 0; i < SCENE_PIPES; i++)
		scene.pipe[i].info.unsent = 2 * 1448;
	scene.pipe[2].info.unsent = 1448;
	assert_int_equal(pick(&scene, SCENE_PIPES), 2);
	scene.pipe[4].info.cwnd = 11;
	assert_int_equal(pick(&scene, SCENE_PIPES), 4);
	scene.pipe[4].info.rtt_ms = 500;
	assert_int_equal(pick(&scene, SCENE_PIPES), 2);
}

static void soonest_prefers_the_nearer_path_while_that_is_sooner(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_soonest);
	open_paths(&scene);
	for (int i = 0; i < SCENE_PIPES; i++)
		scene.pipe[i].info.rttmin_ms = i == 1 ? 50 : 70;
	scene.pipe[1].info.in_flight = 8 * 1448;
	assert_int_equal(pick(&scene, SCENE_PIPES), 1);
	/* 10 ms farther, or two segments that wait for 10 ms and one more. */
	scene.pipe[1].info.in_flight = 10 * 1448;
	scene.pipe[1].info.unsent = 2 * 1448;
	assert_int_equal(pick(&scene, SCENE_PIPES), 0);
	/* Paths that hardly differ are alike: no pipe is filled for that. */
	open_paths(&scene);
	scene.pipe[0].info.rttmin_ms = 52;
	assert_int_equal(pick(&scene, SCENE_PIPES), 0);
	for (int i = 0; i < SCENE_PIPES; i++)
		scene.pipe[i].info.rttmin_ms = 0.001 * (SCENE_PIPES - i);
	assert_int_equal(pick(&scene, SCENE_PIPES), 0);
}

static void fills_pairs(struct scene *scene)
{
	for (unsigned int i = 0; i < 2 * SCENE_PIPES; i++) {
		unsigned int at = pick(scene, SCENE_PIPES);

		assert_int_equal(at, i / 2);
		scene->pipe[at].tx_messages++;
		scene->pipe[at].info.in_flight += 1448;
	}
}

static void soonest_fills_pairs_evenly(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_soonest);
	open_paths(&scene);
	fills_pairs(&scene);
}

static void what_is_said_of_the_session_is_no_half_of_a_pair(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_soonest);
	open_paths(&scene);
	for (int i = 0; i < SCENE_PIPES; i++)
		scene.pipe[i].tx_messages = scene.pipe[i].tx_control = 1;
	fills_pairs(&scene);
}

static void what_goes_in_one_segment_is_one_half_of_a_pair(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_soonest);
	open_paths(&scene);
	for (int i = 0; i < SCENE_PIPES; i++) {
		scene.pipe[i].tx_messages = 4;
		scene.pipe[i].tx_joined = 2;
	}
	fills_pairs(&scene);
}

/* In the same segment, as long as that has room: not where it would arrive later, though. */
static void soonest_joins_what_is_about_to_be_written(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_soonest);
	open_paths(&scene);
	scene.pipe[3].gathered = 1;
	scene.pipe[3].queued = 20;
	assert_int_equal(pick(&scene, SCENE_PIPES), 3);
	scene.pipe[3].queued = MSS;
	assert_int_equal(pick(&scene, SCENE_PIPES), 0);
	scene.pipe[3].queued = 20;
	scene.pipe[3].info.in_flight = 10 * MSS;
	assert_int_equal(pick(&scene, SCENE_PIPES), 0);
}

static void rr_takes_each_in_turn_and_passes_over_the_blocked(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_rr);
	for (unsigned int i = 0; i < 3 * SCENE_PIPES; i++)
		assert_int_equal(pick(&scene, SCENE_PIPES), i % SCENE_PIPES);
	/* Pipes 0 and 2 blocked; the order of the rest is not that of the
	 * circle, as it is not in a session after one left. */
	scene.all[0] = &scene.pipe[4];
	scene.all[1] = &scene.pipe[1];
	scene.all[2] = &scene.pipe[3];
	assert_int_equal(pick(&scene, 3), 1);
	assert_int_equal(pick(&scene, 3), 3);
	assert_int_equal(pick(&scene, 3), 4);
	assert_int_equal(pick(&scene, 3), 1);
}

static void random_is_even_and_can_be_had_again(void **state)
{
	enum { PICKS = 20000 };
	unsigned int count[SCENE_PIPES] = { 0 };
	struct scene a, b;

	(void)state;
	scene_init(&a, &sched_drr, &sched_random);
	scene_init(&b, &sched_drr, &sched_random);
	a.s.random = b.s.random = 12345;
	for (int i = 0; i < PICKS; i++) {
		unsigned int at = pick(&a, SCENE_PIPES);

		assert_int_equal(pick(&b, SCENE_PIPES), at);
		count[at]++;
	}
	for (int i = 0; i < SCENE_PIPES; i++)
		assert_in_range(count[i], PICKS / SCENE_PIPES - 400,
				PICKS / SCENE_PIPES + 400);
	b.s.random = 54321;
	for (int i = 0, same = 0; i < 100; i++) {
		same += pick(&a, SCENE_PIPES) == pick(&b, SCENE_PIPES);
		assert_true(same < 60);
	}
}

static void fixed_gives_each_connection_one_pipe(void **state)
{
	unsigned int used[SCENE_PIPES] = { 0 };
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_fixed);
	for (int c = 0; c < SCENE_CONNS; c++) {
		unsigned int carriers = 0;

		for (int p = 0; p < SCENE_PIPES; p++) {
			if (!sched_carries(&scene.s, &scene.pipe[p],
					   &scene.conn[c]))
				continue;
			carriers++;
			used[p]++;
		}
		assert_int_equal(carriers, 1);
	}
	for (int p = 0; p < SCENE_PIPES; p++)
		assert_true(used[p] >= SCENE_CONNS / SCENE_PIPES);
	scene.s.pipes = &sched_least;
	assert_true(sched_carries(&scene.s, &scene.pipe[0], &scene.conn[0]));
	assert_true(sched_carries(&scene.s, &scene.pipe[1], &scene.conn[0]));
}

/* --- connections: fifo --- */

static void fifo_serves_the_first_until_it_is_silent(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_fifo, &sched_least);
	scene_ready(&scene, 4);
	scene_ready(&scene, 2);
	scene_ready(&scene, 7);
	for (int i = 0; i < 100; i++)
		assert_int_equal(scene_send(&scene, 0, 60000), 4);
	scene_silent(&scene, 4);
	assert_int_equal(scene_send(&scene, 0, 60000), 2);
	scene_ready(&scene, 4);
	assert_int_equal(scene_send(&scene, 0, 60000), 2);
	scene_silent(&scene, 2);
	assert_int_equal(scene_send(&scene, 0, 60000), 7);
	scene_silent(&scene, 7);
	assert_int_equal(scene_send(&scene, 0, 60000), 4);
}

/* --- connections: deficit round robin --- */

/* What any two that always have something to send may differ by: a turn's
 * credit, and a message that overdraws it. */
static uint64_t fair_share_error(size_t room)
{
	return 2 * ((room > QUANTUM ? room : QUANTUM) + OVERDRAW);
}

static void drr_is_fair_at_every_moment(void **state)
{
	static const size_t rooms[] = { 1, 536, 1400, 4096, 9000, 65536,
				       262144 };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (size_t k = 0; k < sizeof(rooms) / sizeof(rooms[0]); k++) {
		struct scene scene;

		scene_init(&scene, &sched_drr, &sched_least);
		for (unsigned int i = 0; i < SCENE_CONNS; i++)
			scene_ready(&scene, i);
		for (int turn = 0; turn < 5000; turn++) {
			uint64_t least = UINT64_MAX, most = 0;

			scene_send(&scene, random_below(&r, SCENE_PIPES), rooms[k]);
			for (int i = 0; i < SCENE_CONNS; i++) {
				if (scene.sent[i] < least)
					least = scene.sent[i];
				if (scene.sent[i] > most)
					most = scene.sent[i];
			}
			assert_true(most - least <=
				    fair_share_error(rooms[k]));
		}
	}
}

static void drr_serves_the_newly_active_before_the_bulk(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_least);
	for (unsigned int i = 0; i < 5; i++)
		scene_ready(&scene, i);
	for (int i = 0; i < 100; i++)
		scene_send(&scene, 0, 3000);
	scene_ready(&scene, 9);
	for (uint64_t got = 0; got < QUANTUM; got = scene.sent[9])
		assert_int_equal(scene_send(&scene, 0, 3000), 9);
	/* Its quantum is spent: now it waits like the others. */
	for (int i = 0; i < 5; i++)
		assert_int_not_equal(scene_send(&scene, 0, 3000), 9);
}

/* One that says a little, falls silent and says a little again is not newly
 * active each time; nor does it starve, though it may lose the rest of a turn
 * with each silence. */
static void drr_is_not_tricked_by_small_pieces(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_least);
	scene_ready(&scene, 0);
	scene_ready(&scene, 1);
	for (int turn = 0; turn < 5000; turn++) {
		if (scene_send(&scene, 0, 4096) == 1) {
			scene_silent(&scene, 1);
			scene_ready(&scene, 1);
		}
	}
	assert_true(scene.sent[1] <= scene.sent[0] + fair_share_error(4096));
	assert_true(scene.sent[0] <= 3 * scene.sent[1]);
}

/* The first turn of each of @n on a path whose pipes take @room. */
static void assert_turns(unsigned int n, size_t room, size_t turn)
{
	struct scene scene;
	struct sched_choice choice;

	scene_init(&scene, &sched_drr, &sched_least);
	for (unsigned int i = 0; i < n; i++) {
		scene_ready(&scene, i);
		scene.s.conns->sent(&scene.s, &scene.conn[i], QUANTUM);
		list_del(&scene.conn[i].ahead);
	}
	choice = scene_next(&scene, 0, room);
	assert_int_equal(choice.act, SCHED_NEW);
	assert_int_equal(choice.budget, turn);
}

static void turns_are_shorter_where_many_wait(void **state)
{
	(void)state;
	assert_turns(2, 262144, 131072);
	assert_turns(3, 262144, 262144 / 3);
	assert_turns(SCENE_CONNS, 262144, 65536);
	assert_turns(SCENE_CONNS, 20000, 20000);
	assert_turns(SCENE_CONNS, 100, 100);
}

static void drr_gives_a_lonely_one_all_the_room(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, &sched_drr, &sched_least);
	scene_ready(&scene, 3);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(scene_next(&scene, 0, 65536).budget, 65536);
		scene_send(&scene, 0, 65536);
	}
	/* And what it sent alone is not held against it. */
	scene_ready(&scene, 4);
	scene.sent[3] = 0;
	for (int i = 0; i < 20; i++)
		scene_send(&scene, 0, 4096);
	assert_true(scene.sent[4] <= scene.sent[3] + fair_share_error(4096));
}

/* --- any policies, any course of events --- */

static int index_of_any(struct random *r, const struct scene *scene, bool ready)
{
	unsigned int from = random_below(r, SCENE_CONNS);

	for (unsigned int i = 0; i < SCENE_CONNS; i++) {
		unsigned int at = (from + i) % SCENE_CONNS;

		if (scene->conn[at].ready == ready)
			return (int)at;
	}
	return -1;
}

static bool somebody_may(const struct scene *scene, unsigned int pipe)
{
	for (int i = 0; i < SCENE_CONNS; i++) {
		if (scene->conn[i].ready &&
		    sched_carries(&scene->s, &scene->pipe[pipe],
				  &scene->conn[i]))
			return true;
	}
	return false;
}

/* Ends for good, and another takes its place. */
static void replace(struct scene *scene, unsigned int i)
{
	sched_forget(&scene->s, &scene->conn[i], 0);
	assert_true(list_empty(&scene->conn[i].turn));
	scene->conn[i].ready = false;
	scene->conn[i].deficit = 0;
	scene->conn[i].served = 0;
}

static void offer(struct random *r, struct scene *scene)
{
	unsigned int pipe = random_below(r, SCENE_PIPES);
	size_t room = random_range(r, 1, 70000);
	struct sched_choice choice = scene_next(scene, pipe, room);
	struct conn *c = choice.conn;
	size_t sent;

	if (!somebody_may(scene, pipe)) {
		assert_int_equal(choice.act, SCHED_WAIT);
		return;
	}
	assert_int_equal(choice.act, SCHED_NEW);
	assert_true(c->ready);
	assert_true(sched_carries(&scene->s, &scene->pipe[pipe], c));
	assert_in_range(choice.budget, 1, room);
	sent = random_below(r, (uint32_t)choice.budget + 1);
	/* A short read is how a session learns that there is no more. */
	if (sent < choice.budget)
		scene_silent(scene, (unsigned int)(c - scene->conn));
	scene->s.conns->sent(&scene->s, c, sent);
}

static void step(struct random *r, struct scene *scene)
{
	int i;

	switch (random_below(r, 8)) {
	case 0:
		i = index_of_any(r, scene, true);
		if (i >= 0)
			scene_silent(scene, (unsigned int)i);
		break;
	case 1:
		replace(scene, random_below(r, SCENE_CONNS));
		break;
	case 2:
	case 3:
		i = index_of_any(r, scene, false);
		if (i >= 0)
			scene_ready(scene, (unsigned int)i);
		break;
	default:
		offer(r, scene);
	}
}

static void assert_counts(const struct scene *scene)
{
	unsigned int ready = 0;

	for (int i = 0; i < SCENE_CONNS; i++)
		ready += scene->conn[i].ready;
	assert_int_equal(scene->s.ready, ready);
}

/* Whoever has something and a pipe that carries it comes to send: offers go
 * round until each was served, within a bounded number of bytes. */
static void assert_nobody_starves(struct scene *scene)
{
	bool waits[SCENE_CONNS];
	unsigned int left = 0;

	for (int i = 0; i < SCENE_CONNS; i++) {
		waits[i] = scene->conn[i].ready;
		left += waits[i];
	}
	for (unsigned int turn = 0; left; turn++) {
		unsigned int pipe = turn % SCENE_PIPES, i;

		assert_true(turn < 100 * SCENE_CONNS * SCENE_PIPES);
		if (!somebody_may(scene, pipe))
			continue;
		i = scene_send(scene, pipe, 65536);
		left -= waits[i];
		waits[i] = false;
	}
}

static void any_course_of_events(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 300; round++) {
		const struct conn_policy *conns = conn_policies[round % 5];
		const struct pipe_policy *pipes = pipe_policies[round / 5 % 5];
		struct scene scene;

		scene_init(&scene, conns, pipes);
		for (int i = 0; i < 500; i++) {
			step(&r, &scene);
			assert_counts(&scene);
		}
		if (conns != &sched_fifo)
			assert_nobody_starves(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_are_found_by_name),
		cmocka_unit_test(least_goes_by_unsent_then_by_in_flight),
		cmocka_unit_test(soonest_goes_by_the_window_then_by_the_path),
		cmocka_unit_test(
			soonest_prefers_the_nearer_path_while_that_is_sooner),
		cmocka_unit_test(soonest_fills_pairs_evenly),
		cmocka_unit_test(what_is_said_of_the_session_is_no_half_of_a_pair),
		cmocka_unit_test(what_goes_in_one_segment_is_one_half_of_a_pair),
		cmocka_unit_test(soonest_joins_what_is_about_to_be_written),
		cmocka_unit_test(
			rr_takes_each_in_turn_and_passes_over_the_blocked),
		cmocka_unit_test(random_is_even_and_can_be_had_again),
		cmocka_unit_test(fixed_gives_each_connection_one_pipe),
		cmocka_unit_test(fifo_serves_the_first_until_it_is_silent),
		cmocka_unit_test(drr_is_fair_at_every_moment),
		cmocka_unit_test(drr_serves_the_newly_active_before_the_bulk),
		cmocka_unit_test(drr_is_not_tricked_by_small_pieces),
		cmocka_unit_test(turns_are_shorter_where_many_wait),
		cmocka_unit_test(drr_gives_a_lonely_one_all_the_room),
		cmocka_unit_test(any_course_of_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
