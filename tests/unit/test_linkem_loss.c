/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topologies/linkem/loss.h"

enum { PACKETS = 400000 };

static const struct rng rng = { .seed = 11, .direction = 0 };
static bool fate[PACKETS];

static struct loss parsed(const char *text)
{
	struct loss loss = { .model = LOSS_NONE };
	char why[256] = "";

	if (loss_parse(&loss, text, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return loss;
}

/* The fate of PACKETS packets; how many are lost. */
static int play(const char *text)
{
	struct loss loss = parsed(text);
	int lost = 0;

	for (uint64_t i = 0; i < PACKETS; i++) {
		fate[i] = loss_take(&loss, &rng, i);
		lost += fate[i];
	}
	loss_fini(&loss);
	return lost;
}

static void none_loses_nothing_and_one_everything(void **state)
{
	(void)state;
	assert_int_equal(play("none"), 0);
	assert_int_equal(play("0"), 0);
	assert_int_equal(play("bernoulli:1"), PACKETS);
}

/* Within the 99.9 % interval of the binomial distribution; a fixed seed. */
static void bernoulli_loses_its_share(void **state)
{
	static const double p[] = { 0.001, 0.01, 0.02, 0.5 };
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++) {
		double sigma = sqrt(PACKETS * p[i] * (1 - p[i]));

		snprintf(text, sizeof(text), "%g", p[i]);
		assert_true(fabs(play(text) - PACKETS * p[i]) < 3.29 * sigma);
	}
}

static void bernoulli_is_independent(void **state)
{
	int both = 0;

	(void)state;
	play("0.1");
	for (int i = 1; i < PACKETS; i++)
		both += fate[i] && fate[i - 1];
	assert_true(fabs(both - PACKETS * 0.01) < 3.29 * sqrt(PACKETS * 0.01));
}

static void a_fate_does_not_depend_on_others(void **state)
{
	struct loss loss = parsed("0.3");

	(void)state;
	play("0.3");
	for (uint64_t i = PACKETS; i-- > 0;)
		assert_int_equal(loss_take(&loss, &rng, i), fate[i]);
}

/* With BAD = 1, GOOD = 0 the states can be read from the fates. */
static void gilbert_elliott_has_its_bursts(void **state)
{
	const double p = 0.01, r = 0.25;
	int lost = play("ge:0.01,0.25,1");
	int bursts = fate[0];

	(void)state;
	for (int i = 1; i < PACKETS; i++)
		bursts += fate[i] && !fate[i - 1];
	assert_true(fabs((double)lost / PACKETS / (p / (p + r)) - 1) < 0.05);
	assert_true(fabs((double)lost / bursts * r - 1) < 0.05);
}

static void gilbert_elliott_loses_in_both_states(void **state)
{
	double share = (0.02 * 0.5 + 0.1 * 0.05) / (0.02 + 0.1);

	(void)state;
	assert_true(fabs(play("ge:0.02,0.1,0.5,0.05") / (PACKETS * share) -
			 1) < 0.05);
}

static void gilbert_elliott_repeats(void **state)
{
	static bool first[PACKETS];

	(void)state;
	play("ge:0.01,0.25,0.8,0.001");
	memcpy(first, fate, sizeof(first));
	play("ge:0.01,0.25,0.8,0.001");
	assert_memory_equal(first, fate, sizeof(first));
}

static void periodic_loses_each_nth(void **state)
{
	(void)state;
	assert_int_equal(play("every:100"), PACKETS / 100);
	assert_true(fate[99] && fate[199] && !fate[0] && !fate[100]);
	assert_int_equal(play("every:100,5"), PACKETS / 100);
	assert_true(fate[5] && fate[105] && !fate[4]);
	assert_int_equal(play("every:1"), PACKETS);
}

static void a_list_loses_what_it_names(void **state)
{
	(void)state;
	assert_int_equal(play("list:7"), 1);
	assert_true(fate[7]);
	/* Out of order, overlapping, twice. */
	assert_int_equal(play("list:20-22,3,21-25,3,0"), 8);
	assert_true(fate[0] && fate[3] && fate[20] && fate[25]);
	assert_false(fate[1] || fate[19] || fate[26]);
}

static void a_list_comes_from_a_file(void **state)
{
	char path[] = "/tmp/tm3-loss-XXXXXX";
	char text[64];
	int fd = mkstemp(path);
	FILE *out = fdopen(fd, "w");

	(void)state;
	assert_non_null(out);
	fputs("# those of run 3\n5\n\n10-12\n", out);
	fclose(out);
	snprintf(text, sizeof(text), "list:@%s", path);
	assert_int_equal(play(text), 4);
	assert_true(fate[5] && fate[10] && fate[12]);
	unlink(path);
}

static void nonsense_is_refused_and_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"", "-0.1", "1.1", "1%", "nan", "inf", "0x1p-3", "ge:", "ge:1",
		"ge:0.1,0.2", "ge:0.1,0.2,0.3,0.4,0.5", "ge:0.1,2,0.3",
		"ge:a,b,c", "every:0", "every:-1", "every:5,x", "every:",
		"list:", "list:a", "list:5-3", "list:1,,2", "list:1,",
		"list:@/nowhere/at/all", "burst:1", "bernoulli:",
		"list:99999999999999999999999",
	};
	struct loss loss = parsed("list:1,5-9");
	char why[256], told[64];
	FILE *out;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		*why = '\0';
		if (loss_parse(&loss, wrong[i], why, sizeof(why)) == 0)
			fail_msg("'%s' was taken", wrong[i]);
		assert_true(*why && !strchr(why, '\n'));
	}
	out = fmemopen(told, sizeof(told), "w");
	loss_print(&loss, out);
	fclose(out);
	assert_string_equal(told, "list:1,5-9");
	loss_fini(&loss);
}

static void what_is_told_can_be_parsed(void **state)
{
	static const char *const text[] = {
		"none", "bernoulli:0.015", "ge:0.01,0.25,1,0", "every:7,3",
		"list:1,5-9",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		struct loss loss = parsed(text[i]);
		char told[64];
		FILE *out = fmemopen(told, sizeof(told), "w");

		loss_print(&loss, out);
		fclose(out);
		assert_string_equal(told, text[i]);
		loss_fini(&loss);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_loses_nothing_and_one_everything),
		cmocka_unit_test(bernoulli_loses_its_share),
		cmocka_unit_test(bernoulli_is_independent),
		cmocka_unit_test(a_fate_does_not_depend_on_others),
		cmocka_unit_test(gilbert_elliott_has_its_bursts),
		cmocka_unit_test(gilbert_elliott_loses_in_both_states),
		cmocka_unit_test(gilbert_elliott_repeats),
		cmocka_unit_test(periodic_loses_each_nth),
		cmocka_unit_test(a_list_loses_what_it_names),
		cmocka_unit_test(a_list_comes_from_a_file),
		cmocka_unit_test(nonsense_is_refused_and_changes_nothing),
		cmocka_unit_test(what_is_told_can_be_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
