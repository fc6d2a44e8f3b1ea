/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "core_dumps.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/*
 * A limit of 0 stops files alone: where core_pattern names a program, that
 * hears of a crash whatever the limit is, unless the process is not dumpable.
 */
int core_dumps_off(void)
{
	static const struct rlimit none = { 0, 0 };
	struct rlimit now;

	/* Who started us may have set it, and forbidden to set any. */
	if (getrlimit(RLIMIT_CORE, &now) < 0 || now.rlim_max) {
		if (setrlimit(RLIMIT_CORE, &none) < 0)
			return -errno;
	}
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
