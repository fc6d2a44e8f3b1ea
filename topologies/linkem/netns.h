/* SPDX-License-Identifier: MIT */
/* Network namespaces by name, by process, by path. */
#ifndef LINKEM_NETNS_H
#define LINKEM_NETNS_H

/*
 * `self`, a process id, a path (with a slash in it), or a name as of
 * `ip netns`. A descriptor, or -errno.
 */
int netns_open(const char *what);

/* Puts the calling thread inside. 0 or -errno. */
int netns_enter(int fd);

#endif
