/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

int netns_open(const char *what)
{
	char path[PATH_MAX];
	int fd;

	if (!strcmp(what, "self"))
		snprintf(path, sizeof(path), "/proc/self/ns/net");
	else if (*what && strspn(what, "0123456789") == strlen(what))
		snprintf(path, sizeof(path), "/proc/%s/ns/net", what);
	else if (strchr(what, '/'))
		snprintf(path, sizeof(path), "%s", what);
	else
		snprintf(path, sizeof(path), "/run/netns/%s", what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int netns_enter(int fd)
{
	return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}
