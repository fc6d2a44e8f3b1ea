/* SPDX-License-Identifier: MIT */
/*
 * What is said of incidents, and how often; in halted time, with stderr as a pipe.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/log.h"
#include "mux/base/loop.h"
#include "mux/base/incidents.h"
#include "mux/base/seldom.h"
#include "halted.h"
#include "loopback.h"

enum { APPLES, PEARS, PLUMS, FIGS, LINES = 3 };

static const struct incidents_kind kinds[] = {
	[APPLES] = { "apples", "apples were refused" },
	[PEARS] = { "pears", "pears were refused" },
	[PLUMS] = { "plums", "plums came", .lines = LINES, .in_order = true },
	[FIGS] = { "figs", "figs were refused", .lines = LINES },
};

static struct {
	struct loop *loop;
	struct log log;
	struct incidents incidents;
	int saved, fd[2];
	char said[1 << 16];
} here;

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(pipe2(here.fd, O_NONBLOCK), 0);
	here.saved = dup(STDERR_FILENO);
	assert_true(here.saved >= 0);
	assert_int_equal(dup2(here.fd[1], STDERR_FILENO), STDERR_FILENO);
	clock_halt();
	log_init(&here.log, "test", LOG_DEBUG);
	here.loop = loop_new();
	incidents_init(&here.incidents, here.loop, &here.log, kinds);
	run_round(here.loop);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	incidents_fini(&here.incidents);
	assert_int_equal(here.incidents.peers, 0);
	incidents_fini(&here.incidents);
	loop_free(here.loop);
	log_fini(&here.log);
	dup2(here.saved, STDERR_FILENO);
	close(here.saved);
	close(here.fd[0]);
	close(here.fd[1]);
	clock_go_on();
	return 0;
}

static void pass(int64_t ns)
{
	clock_pass(ns);
	run_round(here.loop);
	run_round(here.loop);
}

static const char *what_was_said(void)
{
	ssize_t n = read(here.fd[0], here.said, sizeof(here.said) - 1);

	here.said[n > 0 ? n : 0] = '\0';
	return here.said;
}

static void each_peer_and_kind_once(void **state)
{
	(void)state;
	assert_true(incidents_note(&here.incidents, APPLES, "192.0.2.1"));
	assert_false(incidents_note(&here.incidents, APPLES, "192.0.2.1"));
	assert_true(incidents_note(&here.incidents, PEARS, "192.0.2.1"));
	assert_true(incidents_note(&here.incidents, APPLES, "192.0.2.2"));
	assert_int_equal(here.incidents.count[APPLES], 3);
	assert_int_equal(here.incidents.count[PEARS], 1);
	assert_true(here.incidents.changed);
}

/* Those in order are said one by one, and count for nothing. */
static void some_in_a_while_are_none(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(incidents_note(&here.incidents, PLUMS, "192.0.2.1"),
				 i < LINES);
	assert_int_equal(here.incidents.count[PLUMS], 10 - LINES);
	for (int i = 0; i < LINES; i++)
		assert_true(incidents_note(&here.incidents, PLUMS,
					   "192.0.2.2"));
	/* Who goes on is told of by lines like this alone. */
	pass(SELDOM_SECONDS * NS_PER_SEC);
	assert_string_equal(what_was_said(), "test: 192.0.2.1: in the last 10 s "
			    "7 more plums came\n");
	assert_false(incidents_note(&here.incidents, PLUMS, "192.0.2.1"));
	assert_true(incidents_note(&here.incidents, PLUMS, "192.0.2.2"));
	pass(SELDOM_SECONDS * NS_PER_SEC);
	pass(SELDOM_SECONDS * NS_PER_SEC);
	assert_true(incidents_note(&here.incidents, PLUMS, "192.0.2.1"));
	assert_int_equal(here.incidents.count[PLUMS], 10 - LINES + 1);
}

static void some_are_said_one_by_one_and_counted(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(incidents_note(&here.incidents, FIGS, "192.0.2.1"),
				 i < LINES);
	assert_int_equal(here.incidents.count[FIGS], 10);
	pass(SELDOM_SECONDS * NS_PER_SEC);
	assert_string_equal(what_was_said(), "test: 192.0.2.1: in the last 10 s "
			    "7 more figs were refused\n");
}

static void how_many_more_there_were(void **state)
{
	(void)state;
	for (int i = 0; i < 313; i++)
		assert_int_equal(incidents_note(&here.incidents, PEARS, "192.0.2.1"),
				 !i);
	pass((SELDOM_SECONDS - 1) * NS_PER_SEC);
	assert_string_equal(what_was_said(), "");
	pass(NS_PER_SEC);
	assert_string_equal(what_was_said(), "test: 192.0.2.1: in the last 10 s "
			    "312 more pears were refused\n");
	/* Nothing more came; then it is forgotten, and news again. */
	pass(SELDOM_SECONDS * NS_PER_SEC);
	assert_string_equal(what_was_said(), "");
	assert_int_equal(here.incidents.peers, 0);
	assert_true(incidents_note(&here.incidents, PEARS, "192.0.2.1"));
}

static void one_that_goes_on_is_said_again(void **state)
{
	(void)state;
	assert_true(incidents_note(&here.incidents, APPLES, "192.0.2.1"));
	for (int i = 0; i < 3; i++) {
		assert_false(incidents_note(&here.incidents, APPLES, "192.0.2.1"));
		pass(SELDOM_SECONDS * NS_PER_SEC);
		assert_non_null(strstr(what_was_said(), " 1 more apples"));
	}
}

static void a_long_name_is_one_peer(void **state)
{
	static const char who[] =
		"a.name.with.so.many.labels.that.it.does.not.fit.into.what.is.kept.of.it.example:80";

	(void)state;
	assert_true(sizeof(who) > INCIDENTS_WHO);
	assert_true(incidents_note(&here.incidents, APPLES, who));
	assert_false(incidents_note(&here.incidents, APPLES, who));
	pass(SELDOM_SECONDS * NS_PER_SEC);
	assert_non_null(strstr(what_was_said(), " 1 more apples"));
}

/* From ever more addresses: so many lines, and one for all others. */
static void lines_are_bounded(void **state)
{
	unsigned int said = 0, lines = 0;
	const char *at;
	char who[32];

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < 1000; i++) {
			snprintf(who, sizeof(who), "192.0.%d.%d", i / 250, i % 250);
			said += incidents_note(&here.incidents, APPLES, who);
		}
	}
	assert_int_equal(said, INCIDENTS_PEERS + 1);
	assert_int_equal(here.incidents.count[APPLES], 2000);
	pass(SELDOM_SECONDS * NS_PER_SEC);
	for (at = what_was_said(); (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, INCIDENTS_PEERS + 1);
	snprintf(who, sizeof(who), "s %d more apples",
		 2 * (1000 - INCIDENTS_PEERS) - 1);
	assert_non_null(strstr(here.said, "test: others: in the last 10 "));
	assert_non_null(strstr(here.said, who));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_peer_and_kind_once),
		TEST(some_in_a_while_are_none),
		TEST(some_are_said_one_by_one_and_counted),
		TEST(how_many_more_there_were),
		TEST(one_that_goes_on_is_said_again),
		TEST(a_long_name_is_one_peer),
		TEST(lines_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
