/* SPDX-License-Identifier: MIT */
/* The user a process runs as, once it no longer needs to be root. */
#ifndef TM3_USER_H
#define TM3_USER_H

#include <sys/types.h>

struct user {
	uid_t uid;
	gid_t gid;
};

/* Returns 0, -ENOENT if there is no such user, or why nobody knows. */
int user_find(struct user *user, const char *name);

/*
 * All threads are @name from now on, with its groups and no way back, and the process
 * leaves no core dump: it may remember what root alone may read. Returns 0 or a
 * negative error: -EPERM where this process may not do so.
 */
int user_become(const char *name);

#endif
