/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/core_dumps.h"

enum { WRONG = 3 };

/* What it says is what the kernel says then, also when it is said again. */
static int child(void)
{
	struct rlimit limit;

	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1)
		return WRONG;
	if (core_dumps_off() || core_dumps_off())
		return WRONG;
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) ||
	    getrlimit(RLIMIT_CORE, &limit) || limit.rlim_cur || limit.rlim_max)
		return WRONG;
	signal(SIGABRT, SIG_DFL);
	raise(SIGABRT);
	return WRONG;
}

static void a_crash_leaves_no_core(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_false(WCOREDUMP(status));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crash_leaves_no_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
