/* SPDX-License-Identifier: MIT */
/*
 * A UNIX socket that several processes want at the same moment: one has it, and the others
 * are told. Where a process could be in between two calls, the other one comes: listen() and
 * unlink() come here first, by `ld --wrap`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/unix_listen.h"

enum { MODE = 0600, WHY_MAX = 160, STARTERS = 8, ROUNDS = 30 };

struct starter {
	struct unix_path made;
	int fd;			/* or -errno */
	char why[WHY_MAX];
};

static struct {
	char folder[32], path[48], lock[64];
	struct starter first, second;
	const char *comes_at;	/* the call of the first before which the second comes, once */
} here;

int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);

static void begin(struct starter *s)
{
	s->fd = unix_listen(&s->made, here.path, MODE, s->why, sizeof(s->why));
}

static void second_comes_at(const char *call)
{
	if (!here.comes_at || strcmp(call, here.comes_at))
		return;
	here.comes_at = NULL;
	begin(&here.second);
}

int __wrap_listen(int fd, int backlog)
{
	second_comes_at("listen");
	return __real_listen(fd, backlog);
}

int __wrap_unlink(const char *path)
{
	second_comes_at("unlink");
	return __real_unlink(path);
}

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	strcpy(here.folder, "/tmp/tm3-unix-XXXXXX");
	if (!mkdtemp(here.folder))
		return -1;
	snprintf(here.path, sizeof(here.path), "%s/socket", here.folder);
	snprintf(here.lock, sizeof(here.lock), "%s.lock", here.path);
	here.first.fd = here.second.fd = -1;
	return 0;
}

/* Nothing but the socket is left in any case. */
static int tear_down(void **state)
{
	(void)state;
	if (here.first.fd >= 0)
		close(here.first.fd);
	if (here.second.fd >= 0)
		close(here.second.fd);
	__real_unlink(here.path);
	return rmdir(here.folder);
}

static void leave_one_behind(void)
{
	struct starter killed;

	begin(&killed);
	assert_true(killed.fd >= 0);
	close(killed.fd);
	assert_int_equal(access(here.path, F_OK), 0);
}

static int connect_there(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	strcpy(un.sun_path, here.path);
	err = connect(fd, (const struct sockaddr *)&un, sizeof(un)) ? -errno : 0;
	close(fd);
	return err;
}

/* Who connects comes to the first, and the second was told that it has lost. */
static void assert_the_first_has_it(void)
{
	int fd;

	assert_null(here.comes_at);
	assert_true(here.first.fd >= 0);
	assert_int_equal(here.second.fd, -EBUSY);
	assert_string_equal(here.second.why, "another process is about to listen there");
	assert_int_equal(connect_there(), 0);
	fd = accept(here.first.fd, NULL, NULL);
	assert_true(fd >= 0);
	close(fd);
}

static void one_that_does_not_listen_yet_was_not_left_behind(void **state)
{
	(void)state;
	here.comes_at = "listen";
	begin(&here.first);
	assert_the_first_has_it();
}

static void of_two_that_find_one_left_behind_one_takes_its_place(void **state)
{
	(void)state;
	leave_one_behind();
	here.comes_at = "unlink";
	begin(&here.first);
	assert_the_first_has_it();
}

static void who_comes_later_is_told_that_somebody_listens(void **state)
{
	(void)state;
	leave_one_behind();
	begin(&here.first);
	begin(&here.second);
	assert_true(here.first.fd >= 0);
	assert_int_equal(here.second.fd, -EADDRINUSE);
	assert_string_equal(here.second.why, "another process listens there");
	assert_int_equal(connect_there(), 0);
}

/* As after a process was killed that had it. */
static void a_lock_that_was_left_behind_holds_up_nobody(void **state)
{
	FILE *left = fopen(here.lock, "w");

	(void)state;
	fclose(left);
	begin(&here.first);
	assert_true(here.first.fd >= 0);
	assert_int_equal(access(here.lock, F_OK), -1);
}

static void a_lock_that_cannot_be_had_is_named(void **state)
{
	char said[WHY_MAX];

	(void)state;
	assert_int_equal(mkdir(here.lock, 0700), 0);
	begin(&here.first);
	assert_int_equal(here.first.fd, -EISDIR);
	snprintf(said, sizeof(said), "%s: Is a directory", here.lock);
	assert_string_equal(here.first.why, said);
	assert_int_equal(rmdir(here.lock), 0);
}

/* It goes while the socket still listens, and another one's stays. */
static void each_removes_its_own(void **state)
{
	(void)state;
	begin(&here.first);
	unix_unlink(&here.first.made);
	assert_int_equal(connect_there(), -ENOENT);
	begin(&here.second);
	unix_unlink(&here.first.made);
	assert_int_equal(connect_there(), 0);
	unix_unlink(&here.second.made);
	assert_int_equal(connect_there(), -ENOENT);
}

/* Exits with 0 when it has the socket and, at the end, whoever connects is its own. */
static int start(int go, int tried, int over)
{
	struct starter s;
	struct stat st;
	char byte;

	if (read(go, &byte, 1) < 0)
		return 2;
	begin(&s);
	if (write(tried, "t", 1) != 1 || read(over, &byte, 1) < 0)
		return 2;
	if (s.fd < 0)
		return s.fd == -EBUSY || s.fd == -EADDRINUSE ? 1 : 2;
	return !lstat(here.path, &st) && st.st_ino == s.made.inode ? 0 : 3;
}

/* Each ends when all have tried: who has it is there until then. */
static void of_many_processes_one_has_it(void **state)
{
	int go[2], tried[2], over[2], status, round, i, had;
	pid_t pid[STARTERS];
	char byte;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		leave_one_behind();
		assert_int_equal(pipe(go) | pipe(tried) | pipe(over), 0);
		for (i = 0; i < STARTERS; i++) {
			pid[i] = fork();
			if (!pid[i]) {
				close(go[1]);
				close(over[1]);
				_exit(start(go[0], tried[1], over[0]));
			}
		}
		close(go[1]);	/* all at once */
		for (i = 0; i < STARTERS; i++)
			assert_int_equal(read(tried[0], &byte, 1), 1);
		close(over[1]);
		for (i = had = 0; i < STARTERS; i++) {
			assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
			assert_true(WIFEXITED(status));
			assert_in_range(WEXITSTATUS(status), 0, 1);
			had += !WEXITSTATUS(status);
		}
		assert_int_equal(had, 1);
		close(go[0]);
		close(tried[0]);
		close(tried[1]);
		close(over[0]);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_that_does_not_listen_yet_was_not_left_behind),
		T(of_two_that_find_one_left_behind_one_takes_its_place),
		T(who_comes_later_is_told_that_somebody_listens),
		T(a_lock_that_was_left_behind_holds_up_nobody),
		T(a_lock_that_cannot_be_had_is_named),
		T(each_removes_its_own),
		T(of_many_processes_one_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
