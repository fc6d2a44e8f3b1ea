/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "path_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* So often may others have had it, and have removed the file, before it is ours. */
enum { TRIES = 100 };

/* Else its last owner has removed it meanwhile, and another one may be there. */
static bool is_there(const struct path_lock *l)
{
	struct stat ours, there;

	return !fstat(l->fd, &ours) && !lstat(l->path, &there) &&
	       ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static int try_once(struct path_lock *l)
{
	int err = -EAGAIN;

	l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
		     O_NONBLOCK, 0600);
	if (l->fd < 0)
		return -errno;
	if (flock(l->fd, LOCK_EX | LOCK_NB) < 0)
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else if (is_there(l))
		return 0;
	close(l->fd);
	return err;
}

int path_lock_take(struct path_lock *l, const char *path)
{
	int err = -EAGAIN, tries;

	if (snprintf(l->path, sizeof(l->path), "%s.lock", path) >=
	    (int)sizeof(l->path))
		return -ENAMETOOLONG;
	for (tries = 0; err == -EAGAIN && tries < TRIES; tries++)
		err = try_once(l);
	return err == -EAGAIN ? -EBUSY : err;
}

void path_lock_give_back(struct path_lock *l)
{
	unlink(l->path);	/* while it is ours */
	close(l->fd);
}
