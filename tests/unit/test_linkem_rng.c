/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "topologies/linkem/jitter.h"
#include "topologies/linkem/rng.h"

enum { DRAWS = 200000 };

/* The known answers that come with Random123 1.09 (philox4x32, 10 rounds). */
static void philox_gives_the_known_answers(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], answer[4];
	} known[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 },
		  { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
		  { 0xffffffff, 0xffffffff },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t out[4];

		rng_philox(known[i].counter, known[i].key, out);
		assert_memory_equal(out, known[i].answer, sizeof(out));
	}
}

static void a_draw_depends_on_its_name_alone(void **state)
{
	const struct rng r = { .seed = 7, .direction = 0 };
	double forward[64];

	(void)state;
	for (uint64_t i = 0; i < 64; i++)
		forward[i] = rng_uniform(&r, RNG_LOSS, i, 0);
	for (uint64_t i = 64; i-- > 0;) {
		rng_uniform(&r, RNG_JITTER, i, 0);
		assert_true(rng_uniform(&r, RNG_LOSS, i, 0) == forward[i]);
	}
}

static void each_part_of_the_name_matters(void **state)
{
	const struct rng r = { .seed = 7, .direction = 0 };
	const struct rng other_way = { .seed = 7, .direction = 1 };
	const struct rng low = { .seed = 8, .direction = 0 };
	const struct rng high = { .seed = 7 | 1ULL << 40, .direction = 0 };
	double u = rng_uniform(&r, RNG_LOSS, 5, 0);

	(void)state;
	assert_true(u != rng_uniform(&other_way, RNG_LOSS, 5, 0));
	assert_true(u != rng_uniform(&low, RNG_LOSS, 5, 0));
	assert_true(u != rng_uniform(&high, RNG_LOSS, 5, 0));
	assert_true(u != rng_uniform(&r, RNG_JITTER, 5, 0));
	assert_true(u != rng_uniform(&r, RNG_LOSS, 6, 0));
	assert_true(u != rng_uniform(&r, RNG_LOSS, 5 | 1ULL << 33, 0));
	assert_true(u != rng_uniform(&r, RNG_LOSS, 5, 1));
}

/* Over a fixed seed, so that this cannot fail by chance. */
static void uniform_is_uniform(void **state)
{
	const struct rng r = { .seed = 1, .direction = 0 };
	int bucket[16] = { 0 };
	double chi2 = 0;

	(void)state;
	for (uint64_t i = 0; i < DRAWS; i++) {
		double u = rng_uniform(&r, RNG_LOSS, i, 0);

		assert_true(u >= 0 && u < 1);
		bucket[(int)(u * 16)]++;
	}
	for (int i = 0; i < 16; i++)
		chi2 += pow(bucket[i] - DRAWS / 16.0, 2) / (DRAWS / 16.0);
	assert_true(chi2 < 37.7);	/* 99.9 % with 15 degrees */
}

static void moments(enum jitter_dist dist, double *mean, double *deviation,
		    double *low, double *high)
{
	const struct rng r = { .seed = 3, .direction = 1 };
	const int64_t size = 1000000;
	double sum = 0, squares = 0;

	*low = INFINITY;
	*high = -INFINITY;
	for (uint64_t i = 0; i < DRAWS; i++) {
		double x = (double)jitter_of(dist, size, &r, i) / (double)size;

		sum += x;
		squares += x * x;
		*low = fmin(*low, x);
		*high = fmax(*high, x);
	}
	*mean = sum / DRAWS;
	*deviation = sqrt(squares / DRAWS - *mean * *mean);
}

static void jitter_is_as_declared(void **state)
{
	static const struct {
		enum jitter_dist dist;
		double mean, deviation, low, high;
	} declared[] = {
		{ JITTER_UNIFORM, 0, 0.57735, -1, 1 },
		{ JITTER_NORMAL, 0, 1, -4, 4 },
		{ JITTER_EXPONENTIAL, 1, 1, 0, 40 },
		/* Shape 3, scale 2: the deviation is sqrt(3). */
		{ JITTER_PARETO, 1, 1.73205, 0, 100 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(declared) / sizeof(declared[0]); i++) {
		double mean, deviation, low, high;

		moments(declared[i].dist, &mean, &deviation, &low, &high);
		assert_true(fabs(mean - declared[i].mean) < 0.02);
		assert_true(fabs(deviation / declared[i].deviation - 1) < 0.1);
		assert_true(low >= declared[i].low);
		assert_true(high <= declared[i].high);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_gives_the_known_answers),
		cmocka_unit_test(a_draw_depends_on_its_name_alone),
		cmocka_unit_test(each_part_of_the_name_matters),
		cmocka_unit_test(uniform_is_uniform),
		cmocka_unit_test(jitter_is_as_declared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
