/* SPDX-License-Identifier: MIT */
/*
 * Least attained service first, and thin connections: who goes ahead, who
 * comes behind, and what nobody may take from the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/path/paths.h"
#include "mux/sched/thin.h"
#include "sched_scene.h"

#define MS NS_PER_MS

enum { MESSAGE = 1440, SMALL = 4 << 10, YOUNG = 64 << 10 };

static uint64_t sum(const struct scene *scene, unsigned int first)
{
	uint64_t bytes = 0;

	for (unsigned int i = first; i < SCENE_CONNS; i++)
		bytes += scene->sent[i];
	return bytes;
}

/* @n connections that have sent a lot already. */
static void bulks(struct scene *scene, unsigned int n)
{
	scene_init(scene, &sched_las, &sched_least);
	for (unsigned int i = 0; i < n; i++)
		scene_ready(scene, i);
	while (scene->sent[n - 1] < 10 * YOUNG)
		scene_send(scene, 0, MESSAGE);
}

static void the_young_go_ahead_of_the_bulk(void **state)
{
	struct scene scene;

	(void)state;
	bulks(&scene, 2);
	scene_ready(&scene, 7);
	while (scene.sent[7] < YOUNG)
		assert_int_equal(scene_send(&scene, 0, MESSAGE), 7);
	/* It is one of the others now, who go on by turns. */
	memset(scene.sent, 0, sizeof(scene.sent));
	for (int i = 0; i < 300; i++)
		scene_send(&scene, 0, MESSAGE);
	for (int i = 0; i < 2; i++) {
		assert_true(scene.sent[i] + 3 * QUANTUM >= scene.sent[7]);
		assert_true(scene.sent[7] + 3 * QUANTUM >= scene.sent[i]);
	}
}

static void the_small_go_ahead_of_the_young(void **state)
{
	struct scene scene;

	(void)state;
	bulks(&scene, 1);
	scene_ready(&scene, 4);
	while (scene.sent[4] < SMALL)
		scene_send(&scene, 0, MESSAGE);
	scene_ready(&scene, 5);
	while (scene.sent[5] < SMALL)
		assert_int_equal(scene_send(&scene, 0, MESSAGE), 5);
	/* Of equals the first to come is served first. */
	while (scene.sent[4] < YOUNG)
		assert_int_equal(scene_send(&scene, 0, MESSAGE), 4);
	while (scene.sent[5] < YOUNG)
		assert_int_equal(scene_send(&scene, 0, MESSAGE), 5);
}

/* It is bound to a path that is down, while all others have ten times their credit. */
static void who_cannot_be_carried_is_owed_next_to_nothing(void **state)
{
	struct scene scene;
	uint64_t before;

	(void)state;
	bulks(&scene, 1);
	scene.s.path.bound = true;
	scene.conn[0].paths = 1 << 1;
	for (int i = 0; i < 160; i++) {
		scene_ready(&scene, 5);
		for (uint64_t end = scene.sent[5] + YOUNG / 2; scene.sent[5] < end;)
			assert_int_equal(scene_send(&scene, 0, MESSAGE), 5);
		scene_silent(&scene, 5);
		scene.now += 1000 * MS;
	}
	scene.conn[0].paths = 0;
	scene_ready(&scene, 6);
	before = scene.sent[0];
	while (!scene.sent[6])
		scene_send(&scene, 0, MESSAGE);
	assert_true(scene.sent[0] - before <= YOUNG);
}

static void silence_for_a_round_trip_makes_young(void **state)
{
	struct scene scene;

	(void)state;
	bulks(&scene, 2);
	scene.s.round_trip = 50 * MS;
	scene_silent(&scene, 1);
	scene.now = 49 * MS;
	scene_ready(&scene, 1);
	memset(scene.sent, 0, sizeof(scene.sent));
	for (int i = 0; i < 100; i++)
		scene_send(&scene, 0, MESSAGE);
	assert_true(scene.sent[1] <= scene.sent[0] + 3 * QUANTUM);
	scene_silent(&scene, 1);
	scene.now += 50 * MS;
	scene_ready(&scene, 1);
	memset(scene.sent, 0, sizeof(scene.sent));
	while (scene.sent[1] < YOUNG)
		assert_int_equal(scene_send(&scene, 0, MESSAGE), 1);
}

/* Ten of them, and each that is done is followed by a new one at once. */
static void who_opens_without_end_leaves_a_quarter(void **state)
{
	struct scene scene;
	uint64_t all;

	(void)state;
	bulks(&scene, 2);
	for (unsigned int i = 2; i < SCENE_CONNS; i++)
		scene_ready(&scene, i);
	memset(scene.sent, 0, sizeof(scene.sent));
	for (int turn = 0; turn < 20000; turn++) {
		unsigned int i = scene_send(&scene, 0, MESSAGE);

		scene.now += MS;
		if (i < 2 || scene.conn[i].served < YOUNG / 2)
			continue;
		sched_forget(&scene.s, &scene.conn[i], scene.now);
		scene.conn[i].ready = false;
		scene.conn[i].served = 0;
		scene_ready(&scene, i);
	}
	all = sum(&scene, 0);
	/* One page's bytes may go ahead before that. */
	assert_true(4 * (all - sum(&scene, 2)) >= all - (1 << 20));
	assert_true(sum(&scene, 2) > all / 2);
}

static void a_page_goes_ahead_altogether(void **state)
{
	struct scene scene;

	(void)state;
	bulks(&scene, 1);
	scene.sent[0] = 0;
	for (int object = 0; object < 40; object++) {
		unsigned int i = 1 + (unsigned int)object % 10;
		uint64_t before = scene.sent[i];

		scene_ready(&scene, i);
		while (scene.sent[i] < before + 20000)
			assert_int_equal(scene_send(&scene, 0, MESSAGE), i);
		sched_forget(&scene.s, &scene.conn[i], scene.now);
		scene.conn[i].ready = false;
		scene.conn[i].served = 0;
	}
	assert_int_equal(scene.sent[0], 0);
}

/* Whoever is done is followed by a new connection at once. */
static void replace(struct scene *scene, unsigned int i)
{
	sched_forget(&scene->s, &scene->conn[i], scene->now);
	scene->conn[i].ready = false;
	scene->conn[i].served = 0;
	scene_ready(scene, i);
}

/*
 * Small answers without end, on connections of their own: one that has had its first
 * 4 KB comes through all the same, whether or not a bulk waits as well.
 */
static void the_small_do_not_starve_the_young(void **state)
{
	(void)state;
	for (unsigned int n = 1; n < 3; n++) {
		struct scene scene;
		uint64_t before;

		bulks(&scene, n);
		if (n == 1)
			scene_silent(&scene, 0);
		scene_ready(&scene, 4);
		while (scene.sent[4] < SMALL)
			scene_send(&scene, 0, MESSAGE);
		for (unsigned int i = 5; i < SCENE_CONNS; i++)
			scene_ready(&scene, i);
		before = sum(&scene, 0);
		while (scene.sent[4] < 20 << 10 &&
		       sum(&scene, 0) - before < 4 << 20) {
			unsigned int i = scene_send(&scene, 0, MESSAGE);

			if (i > 4 && scene.conn[i].served >= SMALL)
				replace(&scene, i);
		}
		assert_true(scene.sent[4] >= 20 << 10);
		/* The credit, and then a quarter of what all send. */
		assert_in_range(sum(&scene, 0) - before, 0,
				3 * YOUNG + 4 * (17 << 10));
	}
}

/* With an end to the larger ones, too, the small have three quarters of the young's. */
static void the_small_go_on_beside_the_young(void **state)
{
	struct scene scene;
	uint64_t small, all;

	(void)state;
	bulks(&scene, 1);
	for (unsigned int i = 4; i < SCENE_CONNS; i++)
		scene_ready(&scene, i);
	memset(scene.sent, 0, sizeof(scene.sent));
	for (int turn = 0; turn < 20000; turn++) {
		unsigned int i = scene_send(&scene, 0, MESSAGE);

		if (i < 4)
			continue;
		if (scene.conn[i].served >= (i < 6 ? YOUNG / 2 : SMALL))
			replace(&scene, i);
	}
	all = sum(&scene, 4);
	small = sum(&scene, 6);
	/* The first 4 KB of the larger ones are small as well. */
	assert_true(3 * small > 2 * all - (1 << 20));
	assert_true(4 * (all - small) > all - (1 << 20));
	assert_true(5 * scene.sent[0] > sum(&scene, 0) - (1 << 20));
}

/* --- thin --- */

struct wire_scene {
	struct scene scene;
	struct paths paths;
	struct settings settings;
};

static void open_pipes(struct wire_scene *w)
{
	memset(&w->paths, 0, sizeof(w->paths));
	memset(&w->settings, 0, sizeof(w->settings));
	w->settings.late = true;
	scene_init(&w->scene, &sched_las, &sched_soonest);
	for (unsigned int i = 0; i < SCENE_PIPES; i++) {
		struct pipe *p = &w->scene.pipe[i];

		p->settings = &w->settings;
		p->allowance = 2 * 1448;
		p->info.mss = 1448;
		paths_add(&w->paths, 0, p);
	}
}

static void says(struct wire_scene *w, unsigned int pipe, size_t len)
{
	struct pipe *p = &w->scene.pipe[pipe];

	thin_sent(&w->paths, &w->scene.conn[0], p, len);
	p->tx_bytes += len;
	p->info.in_flight += len;
}

static unsigned int goes_to(struct wire_scene *w, unsigned int picked)
{
	return thin_pipe(&w->paths, &w->scene.conn[0],
			 &w->scene.pipe[picked])->index;
}

static void thin_stays_with_what_is_in_flight(void **state)
{
	struct wire_scene w;

	(void)state;
	open_pipes(&w);
	assert_int_equal(goes_to(&w, 1), 1);
	says(&w, 3, 48);
	assert_int_equal(goes_to(&w, 1), 3);
	w.scene.pipe[3].info.in_flight = 0;	/* acknowledged */
	assert_int_equal(goes_to(&w, 1), 1);
	says(&w, 2, 48);
	/* Others' bytes behind it, acknowledged or not, change nothing. */
	w.scene.pipe[2].tx_bytes += 5000;
	w.scene.pipe[2].info.in_flight += 5000;
	assert_int_equal(goes_to(&w, 1), 2);
	w.scene.pipe[2].info.in_flight = 5000;
	assert_int_equal(goes_to(&w, 1), 1);
}

static void more_than_a_segment_is_not_thin(void **state)
{
	struct wire_scene w;

	(void)state;
	open_pipes(&w);
	for (int i = 0; i < 30; i++)
		says(&w, 3, 48);
	assert_int_equal(goes_to(&w, 1), 3);
	says(&w, 3, 48);
	assert_int_equal(goes_to(&w, 1), 1);
	/* Once all of it is acknowledged it begins anew. */
	w.scene.pipe[3].info.in_flight = 0;
	says(&w, 4, 48);
	assert_int_equal(goes_to(&w, 1), 4);
}

/*
 * Messages of 48 bytes, two in flight at any time, while a bulk holds 100 KB on the same
 * pipe: all that is not acknowledged is not its own.
 */
static void others_bytes_do_not_make_it_fat(void **state)
{
	struct wire_scene w;
	struct pipe *p;

	(void)state;
	open_pipes(&w);
	p = &w.scene.pipe[3];
	p->tx_bytes = 200000;
	for (int i = 0; i < 100; i++) {
		says(&w, 3, 48);
		assert_int_equal(goes_to(&w, 1), 3);
		p->tx_bytes += 50000;
		p->info.in_flight = 100000;
	}
}

/* A burst that arrived ends a round trip later, though something was always in flight. */
static void who_was_fat_becomes_thin(void **state)
{
	struct wire_scene w;
	struct pipe *p;

	(void)state;
	open_pipes(&w);
	p = &w.scene.pipe[3];
	says(&w, 3, 5000);
	says(&w, 3, 48);
	assert_int_equal(goes_to(&w, 1), 1);
	for (int i = 0; i < 3; i++) {
		p->info.in_flight = 48;
		says(&w, 3, 48);
	}
	assert_int_equal(goes_to(&w, 1), 3);
}

/* As much as this a round trip, for as long as it likes, but no more. */
static void thin_is_less_than_a_segment_a_round_trip(void **state)
{
	(void)state;
	for (size_t len = 240; len <= 480; len += 240) {
		struct wire_scene w;
		bool thin = 5 * len < 1448;

		open_pipes(&w);
		for (int i = 0; i < 100; i++) {
			size_t out = w.scene.pipe[3].info.in_flight;

			w.scene.pipe[3].info.in_flight =
				out < 3 * len ? out : 3 * len;
			says(&w, 3, len);
			if (i > 10)
				assert_int_equal(goes_to(&w, 1), thin ? 3 : 1);
		}
	}
}

static void thin_does_not_wait_for_a_blocked_pipe(void **state)
{
	struct wire_scene w;

	(void)state;
	open_pipes(&w);
	w.scene.pipe[3].watch.fd = -1;
	says(&w, 3, 48);
	assert_int_equal(goes_to(&w, 1), 1);
	w.scene.pipe[3].watch.fd = 0;
	assert_int_equal(goes_to(&w, 1), 3);
	w.scene.pipe[3].info.unsent = 2 * 1448;
	assert_int_equal(goes_to(&w, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_young_go_ahead_of_the_bulk),
		cmocka_unit_test(the_small_go_ahead_of_the_young),
		cmocka_unit_test(who_cannot_be_carried_is_owed_next_to_nothing),
		cmocka_unit_test(silence_for_a_round_trip_makes_young),
		cmocka_unit_test(who_opens_without_end_leaves_a_quarter),
		cmocka_unit_test(a_page_goes_ahead_altogether),
		cmocka_unit_test(the_small_do_not_starve_the_young),
		cmocka_unit_test(the_small_go_on_beside_the_young),
		cmocka_unit_test(thin_stays_with_what_is_in_flight),
		cmocka_unit_test(more_than_a_segment_is_not_thin),
		cmocka_unit_test(others_bytes_do_not_make_it_fat),
		cmocka_unit_test(who_was_fat_becomes_thin),
		cmocka_unit_test(thin_is_less_than_a_segment_a_round_trip),
		cmocka_unit_test(thin_does_not_wait_for_a_blocked_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
