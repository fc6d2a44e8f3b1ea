/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "unix_listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "path_lock.h"
#include "reject.h"
#include "user.h"

enum { WAITING = 16 };

static int stream_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* The errno of a connect() there: ECONNREFUSED where nobody listens. */
static int knock(const struct sockaddr_un *un)
{
	int fd = stream_socket(), err;

	if (fd < 0)
		return errno;
	err = connect(fd, (const struct sockaddr *)un, sizeof(*un)) ? errno : 0;
	close(fd);
	return err;
}

/* 0: it was left behind and is gone now. */
static int clear_away(const struct sockaddr_un *un, char *why, size_t why_len)
{
	struct stat st;
	int err;

	if (lstat(un->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		reject(why, why_len, "something is there that is no socket");
		return -EADDRINUSE;
	}
	err = knock(un);
	if (err == ENOENT)
		return 0;
	if (err != ECONNREFUSED) {
		reject(why, why_len, "another process listens there");
		return -EADDRINUSE;
	}
	if (geteuid() && st.st_uid != geteuid()) {
		reject(why, why_len, "another user left a socket there");
		return -EADDRINUSE;
	}
	return unlink(un->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* The mode of the socket itself, before bind(), is that of the file. */
static int bind_to(int fd, const struct sockaddr_un *un, mode_t mode)
{
	mode_t before = umask(0);
	int err = 0;

	if (fchmod(fd, mode) < 0 ||
	    bind(fd, (const struct sockaddr *)un, sizeof(*un)) < 0)
		err = -errno;
	umask(before);
	return err;
}

static int remember(struct unix_path *made, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	*made = (struct unix_path){ path, st.st_dev, st.st_ino };
	return 0;
}

static int listen_locked(int fd, struct unix_path *made,
			 const struct sockaddr_un *un, const char *path,
			 mode_t mode, char *why, size_t why_len)
{
	int err = bind_to(fd, un, mode);

	if (err == -EADDRINUSE) {
		err = clear_away(un, why, why_len);
		if (!err)
			err = bind_to(fd, un, mode);
	}
	if (!err)
		err = remember(made, path);
	if (!err && listen(fd, WAITING) < 0)
		err = -errno;
	return err;
}

/* What is wrong with the lock's file itself; what is with the folder @err says. */
static void explain(const struct path_lock *lock, int err, char *why,
		    size_t why_len)
{
	struct stat st;

	if (err == -EBUSY)
		reject(why, why_len, "another process is about to listen there");
	else if (!lstat(lock->path, &st))
		reject(why, why_len, "%s: %s", lock->path, strerror(-err));
}

/*
 * Between its bind() and its listen() a socket looks as if it had been left behind, and what
 * was left behind may be another process's socket when it is removed: so there is one process
 * at a time that does this.
 */
static int listen_at(int fd, struct unix_path *made,
		     const struct sockaddr_un *un, const char *path,
		     mode_t mode, char *why, size_t why_len)
{
	struct path_lock lock;
	int err = path_lock_take(&lock, path);

	if (err) {
		explain(&lock, err, why, why_len);
		return err;
	}
	err = listen_locked(fd, made, un, path, mode, why, why_len);
	path_lock_give_back(&lock);
	return err;
}

int unix_listen(struct unix_path *made, const char *path, mode_t mode,
		char *why, size_t why_len)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = stream_socket();
	int err = fd < 0 ? -errno : 0;

	*why = '\0';
	if (!err && strlen(path) >= sizeof(un.sun_path))
		err = -ENAMETOOLONG;
	if (!err) {
		strcpy(un.sun_path, path);
		err = listen_at(fd, made, &un, path, mode, why, why_len);
	}
	if (!err)
		return fd;
	if (!*why)
		reject(why, why_len, "%s", strerror(-err));
	if (fd >= 0)
		close(fd);
	return err;
}

int unix_give(const struct unix_path *made, const char *user)
{
	struct user who;

	if (!*user || user_find(&who, user))
		return 0;
	return lchown(made->path, who.uid, who.gid) < 0 ? -errno : 0;
}

void unix_unlink(const struct unix_path *made)
{
	struct stat st;

	if (!lstat(made->path, &st) && st.st_dev == made->device &&
	    st.st_ino == made->inode)
		unlink(made->path);
}
