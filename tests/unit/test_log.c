/* SPDX-License-Identifier: MIT */
/*
 * The log with stderr as a pipe, read or not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/log.h"

enum { PIPE_SIZE = 4096, SAID_MAX = 1 << 20 };

static struct log the_log;
static int saved, fd[2];
static char said[SAID_MAX];

static void redirect(void)
{
	saved = dup(STDERR_FILENO);
	assert_true(saved >= 0);
	assert_int_equal(dup2(fd[1], STDERR_FILENO), STDERR_FILENO);
	log_init(&the_log, "test", LOG_DEBUG);
}

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(fcntl(fd[0], F_SETPIPE_SZ, PIPE_SIZE), PIPE_SIZE);
	assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	redirect();
	return 0;
}

static int set_up_socket(void **state)
{
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	redirect();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	log_fini(&the_log);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd[0]);
	close(fd[1]);
	return 0;
}

static const char *what_was_said(void)
{
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd[0], said + have, sizeof(said) - 1 - have)) > 0)
		have += (size_t)n;
	said[have] = '\0';
	return said;
}

static unsigned int lines_said(const char *text)
{
	unsigned int n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

static void lines_come_whole_and_named(void **state)
{
	(void)state;
	log_info(&the_log, "%d apples", 3);
	assert_string_equal(what_was_said(), "test: 3 apples\n");
}

/* The descriptor is shared with the shell: it must stay as it was. */
static void the_descriptor_stays_as_it_was(void **state)
{
	(void)state;
	log_info(&the_log, "hello");
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(fd[1], F_GETFL) & O_NONBLOCK, 0);
}

/* Would wait for ever if it waited; the harness ends a test that does. */
static void nobody_reads(void **state)
{
	char filler[400];
	const char *text;
	int i;

	(void)state;
	memset(filler, 'x', sizeof(filler));
	for (i = 0; i < 90; i++)
		log_debug(&the_log, "%d %.*s", i, (int)sizeof(filler), filler);
	text = what_was_said();
	assert_true(lines_said(text) < 50);
	log_info(&the_log, "on we go");
	text = what_was_said();
	assert_non_null(strstr(text, " lines were lost, because nobody read "
			       "them)\ntest: on we go\n"));
}

static void a_socket_is_not_waited_for_either(void **state)
{
	char filler[900];
	int i;

	(void)state;
	memset(filler, 'x', sizeof(filler));
	for (i = 0; i < 1000; i++)
		log_debug(&the_log, "%.*s", (int)sizeof(filler), filler);
	assert_true(the_log.lost > 0);
	assert_int_equal(lines_said(what_was_said()) + the_log.lost, 1000);
}

/* Each level has a limit of its own. */
static void floods_are_left_out(void **state)
{
	static const enum log_level level[] = { LOG_ERROR, LOG_WARN, LOG_INFO };
	const char *text;
	int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		log_info(&the_log, "i");
	text = what_was_said();
	assert_true(lines_said(text) >= 100 && lines_said(text) < 200);
	log_warn(&the_log, "a warning");
	text = what_was_said();
	assert_non_null(strstr(text, "more lines were left out)\n"));
	assert_non_null(strstr(text, "a warning\n"));
	for (i = 0; i < 3; i++)
		for (int n = 0; n < 1000; n++)
			log_line(&the_log, level[i], "x");
	assert_true(lines_said(what_was_said()) < 500);
}

static char *table_of(size_t lines)
{
	char *text = malloc(lines);

	assert_non_null(text);
	return memset(text, '\n', lines);
}

/* And never at once: it would wait for ever, since only this thread reads. */
static void a_table_is_written_as_there_is_room(void **state)
{
	enum { LINES = 100000 };
	unsigned int read = 0;

	(void)state;
	log_text(&the_log, table_of(LINES), LINES);
	while (log_go_on(&the_log))
		read += lines_said(what_was_said());
	assert_int_equal(read + lines_said(what_was_said()), LINES);
	assert_int_equal(the_log.lost, 0);
}

static void no_line_cuts_a_table(void **state)
{
	enum { LINES = 10000 };
	const char *text;
	unsigned int read;

	(void)state;
	log_text(&the_log, table_of(LINES), LINES);
	log_info(&the_log, "in the middle");
	text = what_was_said();
	assert_null(strstr(text, "middle"));
	read = lines_said(text);
	log_give_up(&the_log);
	assert_int_equal(read + the_log.lost, LINES + 1);
	log_info(&the_log, "behind");
	assert_non_null(strstr(what_was_said(), "were lost, because nobody read "
			       "them)\ntest: behind\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_come_whole_and_named),
		TEST(the_descriptor_stays_as_it_was),
		TEST(nobody_reads),
		cmocka_unit_test_setup_teardown(
			a_socket_is_not_waited_for_either, set_up_socket,
			tear_down),
		TEST(floods_are_left_out),
		TEST(a_table_is_written_as_there_is_room),
		TEST(no_line_cuts_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
