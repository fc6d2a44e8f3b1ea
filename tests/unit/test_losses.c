/* SPDX-License-Identifier: MIT */
/*
 * The rule of a mixed set, over simulated paths: segments that are lost by
 * chance at a rate that changes, in virtual time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/path/losses.h"
#include "random.h"

struct scene {
	struct losses l;
	struct random chance;
	int64_t now;
	/* Of the TCP pipes and of the SCTP pipes, ever. */
	uint64_t sent[2], again[2];
};

static double random_unit(struct random *r)
{
	return (double)(random_next(r) >> 11) / (double)(UINT64_C(1) << 53);
}

static void scene_init(struct scene *s, double percent, uint64_t seed)
{
	*s = (struct scene){ .now = NS_PER_SEC };
	s->chance.state = seed;
	losses_init(&s->l, percent);
}

/* @seconds at @rate segments a second, of which @loss get lost. */
static unsigned int play(struct scene *s, double seconds, unsigned int rate,
			 double loss)
{
	unsigned int steps = (unsigned int)(seconds * 1e9 / LOSSES_STEP);
	unsigned int before = s->l.switches, i, j;

	for (i = 0; i < steps; i++) {
		unsigned int on = s->l.on_sctp;
		unsigned int n = (unsigned int)(rate * (LOSSES_STEP / 1e9));

		for (j = 0; j < n; j++) {
			bool lost = random_unit(&s->chance) < loss;

			s->sent[on] += 1 + lost;
			s->again[on] += lost;
		}
		/* Timers are late, never early. */
		s->now += LOSSES_STEP +
			(int64_t)(random_unit(&s->chance) * 3 * NS_PER_MS);
		losses_add(&s->l, s->now, s->sent[on], s->again[on]);
	}
	return s->l.switches - before;
}

static void traffic_moves_to_sctp_and_back(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 20; seed++) {
		struct scene s;

		scene_init(&s, LOSSES_DEFAULT, seed);
		assert_int_equal(play(&s, 20, 800, 0), 0);
		assert_false(s.l.on_sctp);
		/* 1 % is twice the threshold: within a window of seconds. */
		assert_int_equal(play(&s, 8, 800, 0.01), 1);
		assert_true(s.l.on_sctp);
		assert_true(s.l.share > 0.005 && s.l.share < 0.05);
		assert_int_equal(play(&s, 30, 800, 0.01), 0);
		/* And back, not before a whole window is clean. */
		assert_int_equal(play(&s, 2, 800, 0), 0);
		assert_int_equal(play(&s, 6, 800, 0), 1);
		assert_false(s.l.on_sctp);
		assert_true(s.l.share < 0.0025);
	}
}

static void a_little_loss_moves_nothing(void **state)
{
	struct scene s;

	(void)state;
	scene_init(&s, LOSSES_DEFAULT, 7);
	assert_int_equal(play(&s, 120, 8000, 0.003), 0);
	assert_false(s.l.on_sctp);
}

/* Between half of it and all of it, it stays where it is. */
static void it_does_not_swing_at_the_threshold(void **state)
{
	struct scene s;

	(void)state;
	scene_init(&s, LOSSES_DEFAULT, 3);
	play(&s, 300, 8000, 0.0051);
	assert_true(s.l.switches <= 1);
	scene_init(&s, LOSSES_DEFAULT, 4);
	assert_int_equal(play(&s, 10, 8000, 0.02), 1);
	assert_int_equal(play(&s, 300, 8000, 0.004), 0);
	assert_true(s.l.on_sctp);
}

static void a_handful_is_no_evidence(void **state)
{
	struct scene s;

	(void)state;
	scene_init(&s, LOSSES_DEFAULT, 5);
	/* A tail that was probed for, of twenty segments a second. */
	assert_int_equal(play(&s, 60, 20, 0.05), 0);
	/* Nor is silence evidence of a clean path. */
	assert_int_equal(play(&s, 10, 800, 0.02), 1);
	assert_int_equal(play(&s, 60, 0, 0), 0);
	assert_true(s.l.on_sctp);
	assert_int_equal(losses_sent(&s.l), 0);
	assert_true(losses_share(&s.l) == 0);
}

static void the_threshold_is_the_option(void **state)
{
	struct scene s;

	(void)state;
	scene_init(&s, 5, 6);
	assert_int_equal(play(&s, 60, 800, 0.03), 0);
	assert_int_equal(play(&s, 10, 800, 0.1), 1);
}

/* What was long ago does not count: a burst of loss is forgotten. */
static void the_window_slides(void **state)
{
	struct scene s;
	double before;

	(void)state;
	scene_init(&s, 50, 8);
	play(&s, 4, 800, 0.2);
	before = losses_share(&s.l);
	assert_true(before > 0.1);
	play(&s, 5, 800, 0);
	assert_true(losses_share(&s.l) == 0);
	assert_in_range(losses_sent(&s.l), 2800, 3300);
	/* After a pause as long, what came before it is not compared with. */
	s.now += 100 * NS_PER_SEC;
	losses_add(&s.l, s.now, s.sent[0] + 100000, s.again[0] + 1);
	assert_int_equal(losses_sent(&s.l), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_moves_to_sctp_and_back),
		cmocka_unit_test(a_little_loss_moves_nothing),
		cmocka_unit_test(it_does_not_swing_at_the_threshold),
		cmocka_unit_test(a_handful_is_no_evidence),
		cmocka_unit_test(the_threshold_is_the_option),
		cmocka_unit_test(the_window_slides),
	};

	return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
