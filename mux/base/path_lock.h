/* SPDX-License-Identifier: MIT */
/*
 * Of processes that want the same path at the same moment one goes on: it has a lock on the file
 * PATH.lock, which it makes, and removes at once when it has done what it wanted.
 */
#ifndef TM3_PATH_LOCK_H
#define TM3_PATH_LOCK_H

#include <limits.h>

struct path_lock {
	int fd;
	char path[PATH_MAX];	/* of the file */
};

/*
 * Nobody is waited for: 0, or -EBUSY where another process has it; or another -errno of the
 * file.
 */
int path_lock_take(struct path_lock *l, const char *path);
void path_lock_give_back(struct path_lock *l);

#endif
