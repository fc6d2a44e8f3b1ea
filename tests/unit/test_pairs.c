/* SPDX-License-Identifier: MIT */
/* Segments go in pairs, and pairs go to all pipes: a small object fills no window before others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mux/path/paths.h"
#include "mux/sched/next.h"
#include "mux/wire/wire.h"
#include "sched_scene.h"

enum {
	PAYLOAD = MSS - WIRE_HEADER,
	WINDOW = 10,		/* segments, of each pipe */
	ANSWER = 20,		/* bytes that an opened connection is answered by */
};

struct pairs {
	struct scene scene;
	struct paths paths;
	struct settings settings;
	unsigned int segments[SCENE_PIPES];
};

static void begin(struct pairs *t)
{
	memset(t, 0, sizeof(*t));
	t->settings.late = true;
	scene_init(&t->scene, &sched_las, &sched_soonest);
	t->scene.now = NS_PER_SEC;
	for (unsigned int i = 0; i < SCENE_PIPES; i++) {
		scene_pipe(&t->scene, i, &t->settings, 20);
		t->scene.pipe[i].allowance = 2 * MSS;
		paths_add(&t->paths, 0, &t->scene.pipe[i]);
	}
	aggregate_init(&t->paths.path[0].aggregate, AGGREGATE_OFF, 0,
		       t->scene.now);
	scene_ready(&t->scene, 0);
}

/* All of it leaves at once. */
static void leaves(struct pairs *t, struct pipe *p, size_t bytes)
{
	unsigned int segments = (unsigned int)((bytes + MSS - 1) / MSS);

	p->tx_messages += segments;
	p->info.in_flight += bytes;
	p->info.unfilled += segments * MSS - bytes;
	t->segments[p->index] += segments;
}

/* Messages of the next run, and the pipe that they go on. */
static size_t run_of(struct pairs *t, struct pipe **pipe)
{
	struct view view = {
		.sched = &t->scene.s, .paths = &t->paths, .now = t->scene.now,
	};
	struct next next = sched_next(&view);

	assert_int_equal(next.act, NEXT_SEND);
	assert_int_equal(next.payload, PAYLOAD);
	*pipe = next.pipe;
	return next.bytes / PAYLOAD;
}

static void a_run_is_two_segments(void **state)
{
	struct pipe *pipe;
	struct pairs t;

	(void)state;
	begin(&t);
	assert_int_equal(run_of(&t, &pipe), 2);
}

static void who_has_half_a_pair_takes_one(void **state)
{
	struct pipe *pipe;
	struct pairs t;

	(void)state;
	begin(&t);
	leaves(&t, &t.scene.pipe[3], ANSWER);
	assert_int_equal(run_of(&t, &pipe), 1);
	assert_ptr_equal(pipe, &t.scene.pipe[3]);
	leaves(&t, pipe, MSS);
	assert_int_equal(run_of(&t, &pipe), 2);
	assert_ptr_not_equal(pipe, &t.scene.pipe[3]);
}

/* It was opened, answered, and its answer went on one of them. */
static void an_object_goes_over_all_windows_alike(void **state)
{
	enum { MESSAGES = SCENE_PIPES * WINDOW - 1 };
	unsigned int left = MESSAGES;
	struct pairs t;

	(void)state;
	begin(&t);
	leaves(&t, &t.scene.pipe[2], ANSWER);
	while (left) {
		struct pipe *pipe;
		size_t n = run_of(&t, &pipe);

		n = n < left ? n : left;
		leaves(&t, pipe, n * MSS);
		left -= (unsigned int)n;
		for (unsigned int i = 0; i < SCENE_PIPES; i++)
			assert_true(t.segments[i] + 2 >= t.segments[pipe->index] ||
				    t.segments[pipe->index] <= 2);
	}
	for (unsigned int i = 0; i < SCENE_PIPES; i++)
		assert_int_equal(t.segments[i], WINDOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_is_two_segments),
		cmocka_unit_test(who_has_half_a_pair_takes_one),
		cmocka_unit_test(an_object_goes_over_all_windows_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
