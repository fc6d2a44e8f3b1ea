/* SPDX-License-Identifier: MIT */
/*
 * Cgroups (version 2): one that is there already, or one made for a command,
 * below the one in which this runs so that its limits hold.
 */
#ifndef TM3_BPF_GROUP_H
#define TM3_BPF_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct group {
	int fd;			/* its folder */
	char path[PATH_MAX];
};

/* Each of them or it says why not, and returns -1. */
int group_open(struct group *g, const char *path);
int group_make(struct group *g);

/* This process, and what it starts from now on, is in it. 0 or -errno. */
int group_enter(const struct group *g);
/* Is the cgroup of that id this one, or below it? */
bool group_contains(const struct group *g, uint64_t id);
/* A descriptor on which poll() finds POLLPRI when somebody came or the last one left; or -errno. */
int group_events(const struct group *g);
bool group_is_populated(int events);
/* One on which it finds POLLIN when this cgroup, or one beside it, was removed; or -errno. */
int group_removals(const struct group *g);
/* Asked after that. */
bool group_is_there(const struct group *g, int removals);
void group_remove(const struct group *g);

#endif
