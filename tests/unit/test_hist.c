/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mux/base/hist.h"
#include "random.h"

static void empty_is_zero(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	assert_int_equal(hist_count(&h), 0);
	assert_int_equal(hist_quantile(&h, 0.5), 0);
	assert_int_equal(hist_quantile(&h, 1.0), 0);
}

static void small_values_are_exact(void **state)
{
	(void)state;
	for (int64_t us = 0; us < 16; us++) {
		struct hist h;

		hist_init(&h);
		hist_add(&h, us);
		hist_add(&h, 1000);
		assert_int_equal(hist_quantile(&h, 0.5), us);
	}
}

/* The quantile of two equal values and a longer one comes from a bucket. */
static int64_t through_a_bucket(int64_t us)
{
	struct hist h;

	hist_init(&h);
	hist_add(&h, us);
	hist_add(&h, INT64_MAX);
	return hist_quantile(&h, 0.5);
}

static void every_value_is_within_a_sixteenth(void **state)
{
	int64_t last = 0;

	(void)state;
	for (int64_t us = 1; us <= HIST_LIMIT; us += 1 + us / 1000) {
		int64_t read = through_a_bucket(us);

		assert_true(16 * llabs(read - us) <= us);
		assert_true(read >= last);
		last = read;
	}
}

static void both_sides_of_each_power_of_two(void **state)
{
	(void)state;
	for (int octave = 3; octave < HIST_OCTAVES; octave++) {
		int64_t low = (int64_t)1 << octave;

		assert_true(through_a_bucket(low - 1) < low);
		assert_true(through_a_bucket(low) >= low);
	}
}

static void beyond_the_limit_clamps(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	hist_add(&h, (int64_t)HIST_LIMIT * 100);
	hist_add(&h, INT64_MAX);
	assert_true(hist_quantile(&h, 0.5) <= HIST_LIMIT);
	assert_true(hist_quantile(&h, 0.5) >= HIST_LIMIT / 16 * 15);
	assert_true(hist_quantile(&h, 1.0) == INT64_MAX);
}

static void negative_counts_as_zero(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	hist_add(&h, -5);
	hist_add(&h, INT64_MIN);
	assert_int_equal(h.zeros, 2);
	assert_int_equal(hist_quantile(&h, 1.0), 0);
}

static void zeros_move_the_quantiles(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	hist_add_zeros(&h, 99);
	hist_add(&h, 5000);
	assert_int_equal(hist_count(&h), 100);
	assert_int_equal(hist_quantile(&h, 0.99), 0);
	assert_int_equal(hist_quantile(&h, 0.991), 5000);
	hist_add_zeros(&h, (uint64_t)1 << 40);
	assert_int_equal(hist_quantile(&h, 0.999), 0);
	assert_int_equal(hist_quantile(&h, 1), 5000);
}

static void a_full_bucket_does_not_wrap(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	h.bucket[3] = UINT32_MAX;
	hist_add(&h, 3);
	assert_int_equal(hist_count(&h), UINT32_MAX);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void compare(const struct hist *h, const int64_t *sorted, uint32_t n)
{
	static const double q[] = { 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 1 };

	for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
		uint32_t rank = (uint32_t)(q[i] * n + 0.999999);
		int64_t want = sorted[rank ? rank - 1 : 0];
		int64_t got = hist_quantile(h, q[i]);

		assert_true(16 * llabs(got - want) <= want);
	}
	assert_true(hist_quantile(h, 1) == sorted[n - 1]);
}

/* Spread over all octaves, as delays are. */
static int64_t some_delay(struct random *r)
{
	return random_next(r) >> random_range(r, 64 - HIST_OCTAVES, 63);
}

static void quantiles_are_those_of_the_sorted_samples(void **state)
{
	enum { ROUNDS = 300, SAMPLES = 2000 };
	static int64_t sample[SAMPLES];
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t n = random_range(&r, 1, SAMPLES);
		struct hist h;

		hist_init(&h);
		for (uint32_t i = 0; i < n; i++) {
			sample[i] = some_delay(&r);
			hist_add(&h, sample[i]);
		}
		qsort(sample, n, sizeof(sample[0]), by_value);
		assert_int_equal(hist_count(&h), n);
		compare(&h, sample, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_is_zero),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(every_value_is_within_a_sixteenth),
		cmocka_unit_test(both_sides_of_each_power_of_two),
		cmocka_unit_test(beyond_the_limit_clamps),
		cmocka_unit_test(negative_counts_as_zero),
		cmocka_unit_test(zeros_move_the_quantiles),
		cmocka_unit_test(a_full_bucket_does_not_wrap),
		cmocka_unit_test(quantiles_are_those_of_the_sorted_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
