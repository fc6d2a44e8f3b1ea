/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/base/log.h"
#include "mux/options/options.h"
#include "mux/options/values.h"
#include "mux/sched/sched.h"

static struct settings settings;
static char why[512];

static int set_up(void **state)
{
	(void)state;
	settings_init(&settings);
	strcpy(why, "");
	return 0;
}

static int set(const char *name, const char *value)
{
	return settings_set(&settings, name, value, why, sizeof(why));
}

/* Refused, and the reason names the option and the value. */
static void assert_refused(const char *name, const char *value)
{
	struct settings before = settings;
	char option[64];

	strcpy(why, "");
	assert_int_equal(set(name, value), -1);
	snprintf(option, sizeof(option), "--%s", name);
	assert_memory_equal(why, option, strlen(option));
	if (value)
		assert_non_null(strstr(why, value));
	assert_null(strchr(why, '\n'));
	assert_int_equal(settings.app_buffer, before.app_buffer);
	assert_int_equal(settings.pipe_sndbuf, before.pipe_sndbuf);
	assert_int_equal(settings.max_conns, before.max_conns);
	assert_string_equal(settings.cc, before.cc);
	assert_true(settings.stats_interval == before.stats_interval);
}

static void what_holds_unless_told(void **state)
{
	(void)state;
	assert_true(settings.late);
	assert_true(settings.seccomp);
	assert_string_equal(settings.pipe_policy->name, "soonest");
	assert_string_equal(settings.path_policy->name, "soonest");
	assert_int_equal(settings.aggregate, AGGREGATE_DELAY);
	assert_true(settings.lambda == 2.0);
	assert_int_equal(settings.thin, THIN_COPY);
	assert_false(settings.thin_given);
	assert_int_equal(settings.reinject, REINJECT_OFF);
	assert_true(transport_set_is(&settings.transports, TRANSPORT_TCP));
	assert_true(settings.sctp_loss == 0.5);
	assert_string_equal(settings.conn_policy->name, "las");
	assert_string_equal(settings.cc, "");
	assert_string_equal(settings.stats_path, "");
	assert_int_equal(settings.verbosity, LOG_INFO);
	assert_true(settings.stats_interval == 1.0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), 0);
}

/* What is named with one policy is nothing to the next. */
static void the_last_path_policy_counts(void **state)
{
	(void)state;
	assert_int_equal(set("path-policy", "one:wifi"), 0);
	assert_ptr_equal(settings.path_policy, &path_one);
	assert_string_equal(settings.path_name, "wifi");
	assert_int_equal(set("path-policy", "ecf"), 0);
	assert_ptr_equal(settings.path_policy, &path_ecf);
	assert_string_equal(settings.path_name, "");
	set("pipe-policy", "fixed");
	assert_int_equal(settings_check(&settings, why, sizeof(why)), -1);
	assert_string_equal(why, "--pipe-policy fixed does not go with --path-policy ecf");
}

/* Each option of the list takes a value it should take; none is forgotten. */
static void every_option_can_be_set(void **state)
{
	static const char *const good[][2] = {
		{ "binding", "early" }, { "app-buffer", "64K" },
		{ "pipe-sndbuf", "64K" }, { "pipe-policy", "rr" },
		{ "conn-policy", "fifo" }, { "path-policy", "split:2.5" },
		{ "sizes", "http" }, { "aggregate", "dswa" },
		{ "lambda", "1.5" }, { "thin", "same-pipe" }, { "reinject", "timely" },
		{ "pipe", "tcp:2,sctp:2" },
		{ "sctp-loss", "1.5" }, { "cc", "reno" }, { "seed", "7" },
		{ "max-conns", "100" }, { "memory", "96" },
		{ "window-memory", "64M" },
		{ "keep", "2M" }, { "stats", "file" },
		{ "stats-interval", "0.5" }, { "metrics", "9600" },
		{ "user", "nobody" },
		{ "seccomp", "off" },
		{ "key-file", "keys" }, { "keylog", "log" },
		{ "verbose", NULL },
		{ "quiet", NULL },
	};
	const struct option_spec *o = engine_options;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++, o++) {
		assert_string_equal(o->name, good[i][0]);
		assert_int_equal(o->arg != NULL, good[i][1] != NULL);
		assert_int_equal(set(good[i][0], good[i][1]), 0);
	}
	assert_null(o->name);
	assert_false(settings.late);
	assert_int_equal(settings.app_buffer, 65536);
	assert_int_equal(settings.max_memory, 96 << 20);
	assert_int_equal(settings.window_memory, 64 << 20);
	assert_int_equal(settings.keep, 2 << 20);
	assert_int_equal(settings.pipe_sndbuf, 65536);
	assert_ptr_equal(settings.pipe_policy, &sched_rr);
	assert_ptr_equal(settings.conn_policy, &sched_fifo);
	assert_ptr_equal(settings.path_policy, &path_split);
	assert_true(settings.path_share == 0.025);
	assert_int_equal(settings.aggregate, AGGREGATE_DSWA);
	assert_true(settings.lambda == 1.5);
	assert_int_equal(settings.thin, THIN_SAME_PIPE);
	assert_true(settings.thin_given);
	assert_int_equal(settings.transports.n, 2);
	assert_int_equal(settings.transports.kind[1], TRANSPORT_SCTP);
	assert_true(settings.sctp_loss == 1.5);
	assert_string_equal(settings.cc, "reno");
	assert_int_equal(settings.seed, 7);
	assert_int_equal(settings.max_conns, 100);
	assert_string_equal(settings.stats_path, "file");
	assert_string_equal(settings.user, "nobody");
	assert_false(settings.seccomp);
	assert_string_equal(settings.key_file, "keys");
	assert_string_equal(settings.keylog, "log");
	assert_true(settings.stats_interval == 0.5);
	assert_int_equal(settings.verbosity, LOG_WARN);
	settings.lambda_given = false;	/* early has no use for it */
	assert_int_equal(settings_check(&settings, why, sizeof(why)), 0);
}

static void wrong_values_are_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "seccomp", "maybe" }, { "seccomp", "" },
		{ "binding", "" }, { "binding", "Late" }, { "app-buffer", "" },
		{ "app-buffer", "-1" }, { "app-buffer", "64KB" },
		{ "app-buffer", "1025M" }, { "app-buffer", "1e3" },
		{ "app-buffer", "18446744073709551615M" },
		{ "app-buffer", "99999999999999999999" },
		{ "pipe-sndbuf", "0" }, { "pipe-sndbuf", "1023" },
		{ "pipe-sndbuf", "2048M" }, { "pipe-policy", "foo" },
		{ "pipe-policy", "" }, { "conn-policy", "DRR" },
		{ "path-policy", "" }, { "path-policy", "one" },
		{ "path-policy", "one:" }, { "path-policy", "split" },
		{ "path-policy", "split:100.1" }, { "path-policy", "split:-1" },
		{ "path-policy", "split:nan" }, { "path-policy", "rr:1" },
		{ "path-policy", "one:a-name-too-long-" },
		{ "pipe", "udp" }, { "pipe", "tcp:0" }, { "pipe", "" },
		{ "sctp-loss", "0" }, { "sctp-loss", "51" },
		{ "sctp-loss", "a few" },
		{ "aggregate", "" }, { "aggregate", "on" }, { "lambda", "0" },
		{ "lambda", "0.09" }, { "lambda", "100.1" }, { "lambda", "" },
		{ "lambda", "nan" },
		{ "thin", "" }, { "thin", "Copy" }, { "thin", "same" },
		{ "cc", "no-such-cc" }, { "cc", "" }, { "seed", "-1" },
		{ "seed", "1.5" }, { "seed", "18446744073709551616" },
		{ "max-conns", "0" }, { "max-conns", "65536" },
		{ "memory", "0" }, { "memory", "x" }, { "memory", "64M" },
		{ "window-memory", "1000K" }, { "keep", "0" }, { "keep", "2G" },
		{ "max-conns", "4294967297" }, { "stats", "" },
		{ "stats-interval", "0" }, { "stats-interval", "nan" },
		{ "stats-interval", "inf" }, { "stats-interval", "-1" },
		{ "stats-interval", "0x1" }, { "stats-interval", "1s" },
		{ "stats-interval", "1e9" }, { "no-such-option", "1" },
		{ "verbose", "1" }, { "quiet", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *value = bad[i][1];
		bool named = strcmp(bad[i][0], "no-such-option") &&
			     strcmp(bad[i][0], "verbose");

		if (named)
			assert_refused(bad[i][0], value);
		else
			assert_int_equal(set(bad[i][0], value), -1);
	}
	assert_refused("binding", NULL);
	assert_refused("stats", NULL);
}

static void reasons_tell_the_choices(void **state)
{
	(void)state;
	set("pipe-policy", "foo");
	assert_string_equal(why, "--pipe-policy: 'foo' is not one of soonest, least, "
			    "rr, random, fixed");
	set("conn-policy", "foo");
	assert_string_equal(why, "--conn-policy: 'foo' is not one of las, "
			    "drr, fifo, rr, srpt");
	set("path-policy", "foo:1");
	assert_string_equal(why, "--path-policy: 'foo:1' is not one of soonest, minrtt, "
			    "rr, ecf, txdelay, one, split, copies, dems-b, dems-s, "
			    "dems-f");
	set("thin", "pipe");
	assert_string_equal(why, "--thin: 'pipe' is not one of copy, same-pipe, off");
	set("reinject", "soon");
	assert_string_equal(why, "--reinject: 'soon' is not one of off, timely, mpflex");
	set("cc", "no-such-cc");
	assert_non_null(strstr(why, "reno"));	/* every kernel has it */
}

/* However little room there is for the reason, it ends. */
static void reasons_fit(void **state)
{
	char little[8];

	(void)state;
	memset(little, 'x', sizeof(little));
	assert_int_equal(settings_set(&settings, "seed", "foo", little,
				    sizeof(little)), -1);
	assert_string_equal(little, "--seed:");
}

static void buffers_need_early_binding(void **state)
{
	(void)state;
	assert_int_equal(set("app-buffer", "1"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), -1);
	assert_memory_equal(why, "--app-buffer ", 13);
	assert_int_equal(set("binding", "early"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), 0);
	assert_int_equal(set("app-buffer", "0"), 0);
	assert_int_equal(set("pipe-sndbuf", "4K"), 0);
	assert_int_equal(set("binding", "late"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), -1);
	assert_memory_equal(why, "--pipe-sndbuf ", 14);
}

/* What would change nothing is not taken for something that does. */
static void what_goes_with_what(void **state)
{
	(void)state;
	assert_int_equal(set("lambda", "2"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), -1);
	assert_memory_equal(why, "--lambda ", 9);
	assert_int_equal(set("aggregate", "dswa"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), 0);
	assert_int_equal(set("binding", "early"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), -1);
	settings_init(&settings);
	assert_int_equal(set("sctp-loss", "0.5"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), -1);
	assert_memory_equal(why, "--sctp-loss ", 12);
	assert_int_equal(set("pipe", "sctp"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), -1);
	assert_int_equal(set("pipe", "tcp:2,sctp:2"), 0);
	assert_int_equal(settings_check(&settings, why, sizeof(why)), 0);
}

static void sizes(void **state)
{
	static const char *const bad[] = {
		"", "K", "-1", "+1", " 1", "1 ", "1KK", "1KM", "1.5K", "0x10",
		"17592186044416M", "18446744073709551616",
	};
	size_t value = 99;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(value_bytes(bad[i], &value), -1);
	assert_int_equal(value, 99);
	assert_int_equal(value_bytes("0", &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(value_bytes("4096", &value), 0);
	assert_int_equal(value, 4096);
	assert_int_equal(value_bytes("64k", &value), 0);
	assert_int_equal(value, 65536);
	assert_int_equal(value_bytes("3M", &value), 0);
	assert_int_equal(value, 3 << 20);
}

static void numbers(void **state)
{
	static const char *const bad[] = {
		"", " 1", "1 ", "nan", "inf", "1e999", "0x1", "1,5", ".",
		"e", "--1", "0.9999", "10.0001",
	};
	double value = 99;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(value_number(bad[i], 1, 10, &value), -1);
	assert_true(value == 99);
	assert_int_equal(value_number("1", 1, 10, &value), 0);
	assert_true(value == 1);
	assert_int_equal(value_number("1.25e0", 1, 10, &value), 0);
	assert_true(value == 1.25);
	assert_int_equal(value_number("-.5", -1, 10, &value), 0);
	assert_true(value == -0.5);
}

/* --help: every option, every policy, and no line too long for a terminal. */
static void help_is_complete(void **state)
{
	char *text = NULL, *line, *rest;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	options_print(out, engine_options);
	assert_int_equal(fclose(out), 0);
	for (const struct option_spec *o = engine_options; o->name; o++) {
		char option[64];

		snprintf(option, sizeof(option), "  --%s", o->name);
		assert_non_null(strstr(text, option));
	}
	for (int i = 0; pipe_policies[i]; i++)
		assert_non_null(strstr(text, pipe_policies[i]->name));
	for (int i = 0; conn_policies[i]; i++)
		assert_non_null(strstr(text, conn_policies[i]->name));
	rest = text;
	while ((line = strsep(&rest, "\n")))
		assert_true(strlen(line) < 80);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_holds_unless_told, set_up),
		cmocka_unit_test_setup(the_last_path_policy_counts, set_up),
		cmocka_unit_test_setup(every_option_can_be_set, set_up),
		cmocka_unit_test_setup(wrong_values_are_refused, set_up),
		cmocka_unit_test_setup(reasons_tell_the_choices, set_up),
		cmocka_unit_test_setup(reasons_fit, set_up),
		cmocka_unit_test_setup(buffers_need_early_binding, set_up),
		cmocka_unit_test_setup(what_goes_with_what, set_up),
		cmocka_unit_test_setup(sizes, set_up),
		cmocka_unit_test_setup(numbers, set_up),
		cmocka_unit_test_setup(help_is_complete, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
