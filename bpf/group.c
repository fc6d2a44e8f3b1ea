/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "group.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <linux/magic.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "say.h"

#define NAME "tm3ctl."	/* and the process that it was made for */

int group_open(struct group *g, const char *path)
{
	struct statfs fs;

	if (!realpath(path, g->path)) {
		say("there is no cgroup '%s': %s", path, strerror(errno));
		return -1;
	}
	g->fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->fd < 0) {
		say("'%s' is no cgroup: %s", path, strerror(errno));
		return -1;
	}
	if (!fstatfs(g->fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
		return 0;
	say("'%s' is not in a file system of cgroup2", path);
	close(g->fd);
	return -1;
}

/* Where the first cgroup2 is mounted. */
static int mounted(char path[PATH_MAX])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *it;
	int err = -1;

	while (mounts && err && (it = getmntent(mounts))) {
		if (!strcmp(it->mnt_type, "cgroup2")) {
			snprintf(path, PATH_MAX, "%s", it->mnt_dir);
			err = 0;
		}
	}
	if (mounts)
		endmntent(mounts);
	return err;
}

/* In which cgroup this process is, below where they are mounted. */
static int own(char path[PATH_MAX])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	int err = -1;

	while (file && err && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "0::/", 4))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, PATH_MAX, "%s", line + 3);
		err = 0;
	}
	if (file)
		fclose(file);
	return err;
}

/*
 * Empty ones whose keeper was killed. One whose process is still there may have
 * been made just now. The folder is read, not matched by a pattern: systemd's
 * names have backslashes.
 */
static void sweep(const char *above)
{
	DIR *folder = opendir(above);
	struct dirent *it;
	const char *number;

	while (folder && (it = readdir(folder))) {
		number = it->d_name + strlen(NAME);
		if (strncmp(it->d_name, NAME, strlen(NAME)) ||
		    !isdigit((unsigned char)*number))
			continue;
		if (kill(atoi(number), 0) && errno == ESRCH)
			unlinkat(dirfd(folder), it->d_name, AT_REMOVEDIR);
	}
	if (folder)
		closedir(folder);
}

int group_make(struct group *g)
{
	char root[PATH_MAX], below[PATH_MAX], above[2 * PATH_MAX];
	int len;

	if (mounted(root) || own(below)) {
		say("there is no cgroup2 here: mount -t cgroup2 none /sys/fs/cgroup");
		return -1;
	}
	snprintf(above, sizeof(above), "%s%s", root, strcmp(below, "/") ? below : "");
	sweep(above);
	len = snprintf(g->path, sizeof(g->path), "%s/" NAME "%d", above, getpid());
	if (len >= (int)sizeof(g->path) || (mkdir(g->path, 0755) && errno != EEXIST)) {
		say("no cgroup can be made in %s: %s", above, strerror(errno));
		return -1;
	}
	g->fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->fd >= 0)
		return 0;
	say("%s cannot be opened: %s", g->path, strerror(errno));
	group_remove(g);
	return -1;
}

int group_enter(const struct group *g)
{
	int fd = openat(g->fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, "0", 1) != 1 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

/* nftw() hands nothing on to what it calls. */
static uint64_t looked_for;

static int is_it(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)path;
	(void)ftw;
	return kind == FTW_D && st->st_ino == looked_for;
}

bool group_contains(const struct group *g, uint64_t id)
{
	looked_for = id;
	return nftw(g->path, is_it, 16, FTW_PHYS | FTW_MOUNT) == 1;
}

int group_events(const struct group *g)
{
	int fd = openat(g->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool group_is_populated(int events)
{
	char text[256] = "";

	return pread(events, text, sizeof(text) - 1, 0) > 0 &&
	       strstr(text, "populated 1");
}

/* It is the folder above that says so: this one is there while it is open here. */
int group_removals(const struct group *g)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char above[PATH_MAX];

	if (fd < 0)
		return -errno;
	snprintf(above, sizeof(above), "%s", g->path);
	inotify_add_watch(fd, dirname(above), IN_DELETE | IN_MOVED_FROM);
	return fd;
}

bool group_is_there(const struct group *g, int removals)
{
	char events[4096];
	struct stat st, now;

	while (read(removals, events, sizeof(events)) > 0)
		;
	return !fstat(g->fd, &st) && !stat(g->path, &now) &&
	       st.st_ino == now.st_ino;
}

void group_remove(const struct group *g)
{
	rmdir(g->path);
}
