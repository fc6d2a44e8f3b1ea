/* SPDX-License-Identifier: MIT */
/* What a link is told to be: parameters as words, and what is told of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topologies/linkem/number.h"
#include "topologies/linkem/params.h"

static char *told(const struct params *p)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	params_print(p, out);
	fclose(out);
	return text;
}

static void assert_told(const struct params *p, const char *part)
{
	char *text = told(p);

	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
	free(text);
}

static void a_link_is_unlimited_to_begin_with(void **state)
{
	struct params p;

	(void)state;
	params_init(&p);
	assert_told(&p, "\"rate_mbps\":null");
	assert_told(&p, "\"trace\":null");
	assert_told(&p, "\"overhead_bytes\":14,");
	assert_told(&p, "\"delay_ms\":0,");
	assert_told(&p, "\"aqm\":\"tail\"");
	assert_told(&p, "\"loss\":\"none\"");
	params_fini(&p);
}

static void words_are_taken_and_told(void **state)
{
	struct params p;
	char why[256];

	(void)state;
	params_init(&p);
	assert_int_equal(params_set(&p,
				    "  rate_mbps=9.185\tdelay_ms=35 "
				    "jitter_dist=normal aqm=codel "
				    "loss=ge:0.01,0.3,1 queue_ms=500 ",
				    why, sizeof(why)), 0);
	assert_told(&p, "\"rate_mbps\":9.185,");
	assert_told(&p, "\"delay_ms\":35,");
	assert_told(&p, "\"jitter_dist\":\"normal\"");
	assert_told(&p, "\"aqm\":\"codel\"");
	assert_told(&p, "\"loss\":\"ge:0.01,0.3,1,0\"");
	assert_int_equal(params_set(&p, "queue_ms=none", why, sizeof(why)), 0);
	assert_told(&p, "\"queue_ms\":null");
	assert_int_equal(params_set(&p, "", why, sizeof(why)), 0);
	params_fini(&p);
}

static void a_wrong_word_is_named(void **state)
{
	static const struct {
		const char *words, *says;
	} wrong[] = {
		{ "rate_mbps=10kbit", "rate_mbps: '10kbit'" },
		{ "rate_mbps=-1", "rate_mbps: -1" },
		{ "rate_mbps=0", "rate_mbps: 0" },
		{ "rate_mbps=nan", "rate_mbps:" },
		{ "rate_mbps=inf", "rate_mbps:" },
		{ "rate_mbps=", "rate_mbps:" },
		{ "rate_mbps", "rate_mbps:" },
		{ "rate_mbps=1e9", "rate_mbps:" },
		{ "delay_ms=25ms", "delay_ms: '25ms'" },
		{ "delay_ms=-0.1", "delay_ms:" },
		{ "delay_ms=none", "delay_ms:" },
		{ "jitter_ms=x", "jitter_ms:" },
		{ "jitter_dist=gauss", "jitter_dist: 'gauss'" },
		{ "jitter_dist=norm", "jitter_dist: 'norm'" },
		{ "jitter_reorder=1", "jitter_reorder: '1'" },
		{ "queue_ms=0", "queue_ms:" },
		{ "queue_packets=1.5", "queue_packets:" },
		{ "queue_bytes=-3", "queue_bytes:" },
		{ "overhead_bytes=0.5", "overhead_bytes:" },
		{ "aqm=red", "aqm: 'red'" },
		{ "codel_target_ms=0", "codel_target_ms:" },
		{ "loss=2%", "loss: '2%'" },
		{ "loss=1.01", "loss:" },
		{ "loss_at=middle", "loss_at:" },
		{ "duplicate=2", "duplicate:" },
		{ "reorder=-1", "reorder:" },
		{ "delay_trace=/nowhere", "delay_trace: /nowhere" },
		{ "trace=/nowhere/at/all", "trace: /nowhere/at/all" },
		{ "grants=5,8", "grants: '5,8' is neither none nor" },
		{ "grants=5ms", "grants: '5ms'" },
		{ "grants=5ms,delay=8", "grants: '5ms,delay=8'" },
		{ "grants=5ms,delay=0ms", "grants: a delay of 0 ms" },
		{ "grants=0ms,delay=8ms", "grants: every 0 ms" },
		{ "grants=5ms,delay=8ms,", "grants:" },
		{ "gate=2000", "gate: '2000' is none of" },
		{ "gate=bytes:0", "gate: 0 is not" },
		{ "gate=bytes:2KB", "gate: '2KB'" },
		{ "gate=delay:", "gate: ''" },
		{ "gate=delay:20ms", "gate: '20ms'" },
		{ "report_levels=50,cap=150KB", "report_levels: 50 levels" },
		{ "report_levels=64", "report_levels: '64'" },
		{ "report_levels=64,cap=0KB", "report_levels: a cap of 0" },
		{ "telemetry_ms=501", "telemetry_ms: 501" },
		{ "telemetry_ms=-1", "telemetry_ms: -1" },
		{ "firmware_kb=0", "firmware_kb: 0" },
		{ "host=red", "host: 'red'" },
		{ "interactive=dscp:64", "interactive: 'dscp:64'" },
		{ "interactive=port:2-1", "interactive:" },
		{ "interactive=port:1,", "interactive:" },
		{ "interactive=46", "interactive:" },
		{ "interactive=", "interactive:" },
		{ "speed=10", "speed: no such parameter" },
		{ "=10", ": no such parameter" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct params p;
		char why[256] = "";

		params_init(&p);
		if (params_set(&p, wrong[i].words, why, sizeof(why)) == 0)
			fail_msg("'%s' was taken", wrong[i].words);
		if (!strstr(why, wrong[i].says) || strchr(why, '\n'))
			fail_msg("'%s': %s", wrong[i].words, why);
		params_fini(&p);
	}
}

static void very_long_words_do_no_harm(void **state)
{
	char *words = malloc(100001);
	struct params p;
	char why[64];

	(void)state;
	assert_non_null(words);
	params_init(&p);
	memset(words, 'x', 100000);
	words[100000] = '\0';
	assert_true(params_set(&p, words, why, sizeof(why)) < 0);
	memcpy(words, "loss=", 5);
	words[3000] = '\0';
	assert_true(params_set(&p, words, why, sizeof(why)) < 0);
	assert_memory_equal(why, "loss: ", 6);
	params_fini(&p);
	free(words);
}

static void rate_and_trace_end_each_other(void **state)
{
	char path[] = "/tmp/tm3 trace-XXXXXX";
	char words[64];
	struct params p, copy;
	char why[256];
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "1\n2\n", 4), 4);
	close(fd);
	params_init(&p);
	assert_int_equal(params_set(&p, "rate_mbps=5", why, sizeof(why)), 0);
	/* A backslash makes the blank a part of the name. */
	snprintf(words, sizeof(words), "trace=/tmp/tm3\\ %s", path + 9);
	assert_int_equal(params_set(&p, words, why, sizeof(why)), 0);
	unlink(path);
	assert_string_equal(p.trace_path, path);
	assert_told(&p, "\"rate_mbps\":null");
	assert_int_equal(params_copy(&copy, &p), 0);
	assert_int_equal(params_set(&p, "rate_mbps=5", why, sizeof(why)), 0);
	assert_told(&p, "\"trace\":null");
	assert_int_equal(p.trace.n, 0);
	assert_int_equal(copy.trace.n, 2);
	assert_string_equal(copy.trace_path, path);
	params_fini(&copy);
	params_fini(&p);
}

static void a_delay_trace_stands_beside_the_delay(void **state)
{
	char path[] = "/tmp/tm3-delays-XXXXXX";
	char words[64];
	struct params p, copy;
	char why[256];
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "20 5\n", 5), 5);
	close(fd);
	params_init(&p);
	snprintf(words, sizeof(words), "delay_trace=%s delay_ms=7", path);
	assert_int_equal(params_set(&p, words, why, sizeof(why)), 0);
	unlink(path);
	assert_int_equal(params_copy(&copy, &p), 0);
	assert_int_equal(params_set(&p, "delay_trace=none", why, sizeof(why)),
			 0);
	assert_told(&p, "\"delay_trace\":null");
	assert_told(&p, "\"delay_ms\":7,");
	assert_int_equal(p.delays.n, 0);
	assert_int_equal(copy.delays.n, 1);
	assert_told(&copy, path);
	params_fini(&copy);
	params_fini(&p);
}

static void help_lists_what_is_told(void **state)
{
	char *help = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&help, &len);
	struct params p;
	char *text, *at;
	int keys = 0;

	(void)state;
	params_init(&p);
	text = told(&p);
	params_help(out);
	fclose(out);
	for (at = text; (at = strchr(at, '"')); at++) {
		char *end = strchr(at + 1, '"');
		char key[64];

		assert_non_null(end);
		snprintf(key, sizeof(key), "\n  %.*s ", (int)(end - at - 1),
			 at + 1);
		if (end[1] == ':') {
			keys++;
			/* The first has no line above. */
			assert_true(strstr(help, key) ||
				    !strncmp(help, key + 1, strlen(key + 1)));
		}
		at = end;
	}
	assert_in_range(keys, 15, 40);
	free(text);
	free(help);
	params_fini(&p);
}

static void numbers_are_plain(void **state)
{
	static const char *const wrong[] = {
		"", " 1", "1 ", "0x10", "1,5", "--1", "1e", "e5", ".", "1e400",
	};
	double v;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (number_parse(wrong[i], &v) == 0)
			fail_msg("'%s' was taken", wrong[i]);
	assert_int_equal(number_parse("1e-3", &v), 0);
	assert_true(v == 1e-3);
	assert_int_equal(number_parse("+.5", &v), 0);
	assert_true(v == 0.5);
}

/* --- a radio --- */

static void a_radio_is_told_as_it_was_set(void **state)
{
	struct params p;
	char why[256];

	(void)state;
	params_init(&p);
	assert_false(params_has_radio(&p));
	assert_told(&p, "\"grants\":\"none\"");
	assert_told(&p, "\"firmware_kb\":300,");
	assert_told(&p, "\"report_levels\":\"64,cap=150KB\"");
	assert_told(&p, "\"telemetry_ms\":100,");
	assert_told(&p, "\"gate\":\"none\"");
	assert_told(&p, "\"host\":\"fifo\"");
	assert_told(&p, "\"interactive\":\"dscp:32-63\"");
	assert_int_equal(params_set(&p,
				    "rate_mbps=8 grants=5ms,delay=8ms "
				    "gate=delay:20 host=prio telemetry_ms=0 "
				    "report_levels=256,cap=81338.368KB "
				    "interactive=port:53,dscp:46,dscp:8,port:5-9",
				    why, sizeof(why)), 0);
	assert_true(params_has_radio(&p));
	assert_told(&p, "\"grants\":\"5ms,delay=8ms\"");
	assert_told(&p, "\"telemetry_ms\":0,");
	assert_told(&p, "\"gate\":\"delay:20\"");
	assert_told(&p, "\"report_levels\":\"256,cap=81338.368KB\"");
	assert_told(&p, "\"interactive\":\"dscp:8,dscp:46,port:53,port:5-9\"");
	assert_int_equal(params_set(&p, "telemetry_ms=none interactive=none",
				    why, sizeof(why)), 0);
	assert_told(&p, "\"telemetry_ms\":null");
	assert_told(&p, "\"interactive\":\"none\"");
	params_fini(&p);
}

static void what_does_not_go_together_is_refused(void **state)
{
	static const struct {
		const char *words, *says;	/* NULL: it does */
	} cases[] = {
		{ "", NULL },
		{ "gate=bytes:2000", "gate: needs a radio" },
		{ "host=prio", "host: needs a radio" },
		{ "grants=5ms,delay=8ms", "grants: need a rate" },
		{ "grants=5ms,delay=8ms rate_mbps=8", NULL },
		{ "grants=5ms,delay=8ms rate_mbps=8 aqm=codel", "aqm:" },
		{ "grants=5ms,delay=8ms rate_mbps=8 gate=bytes:300000", NULL },
		{ "grants=5ms,delay=8ms rate_mbps=8 gate=bytes:300001",
		  "gate: 300.001 KB are more than firmware_kb=300" },
		{ "grants=5ms,delay=8ms rate_mbps=8 gate=bytes:2000 "
		  "firmware_kb=2", NULL },
		{ "grants=5ms,delay=8ms rate_mbps=8 gate=delay:300", NULL },
		{ "grants=5ms,delay=8ms rate_mbps=8 gate=delay:301",
		  "gate: 301 KB are more" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct params p;
		char why[256] = "";
		int ret;

		params_init(&p);
		assert_int_equal(params_set(&p, cases[i].words, why,
					    sizeof(why)), 0);
		ret = params_check(&p, why, sizeof(why));
		assert_int_equal(ret == 0, cases[i].says == NULL);
		if (ret && (!strstr(why, cases[i].says) || strchr(why, '\n')))
			fail_msg("'%s': %s", cases[i].words, why);
		params_fini(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_is_unlimited_to_begin_with),
		cmocka_unit_test(words_are_taken_and_told),
		cmocka_unit_test(a_wrong_word_is_named),
		cmocka_unit_test(very_long_words_do_no_harm),
		cmocka_unit_test(rate_and_trace_end_each_other),
		cmocka_unit_test(a_delay_trace_stands_beside_the_delay),
		cmocka_unit_test(help_lists_what_is_told),
		cmocka_unit_test(numbers_are_plain),
		cmocka_unit_test(a_radio_is_told_as_it_was_set),
		cmocka_unit_test(what_does_not_go_together_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
