/* SPDX-License-Identifier: MIT */
/*
 * The paths over which LP's pipes go, as it was told: by which address or device each
 * leaves this host, and how many pipes are on it. Plain data; who binds sockets
 * is LP.
 *
 * The pipes of a session are numbered through: those of the first path, then
 * those of the second. A set without paths is one that nobody named, with all pipes.
 */
#ifndef TM3_PATH_SET_H
#define TM3_PATH_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "limits.h"

enum {
	PATH_NAME_MAX = 15,
	DEVICE_NAME_MAX = 15,	/* as the kernel has it */
};

struct path_spec {
	char name[PATH_NAME_MAX + 1];
	struct sockaddr_storage src;	/* of family AF_UNSPEC: any */
	char device[DEVICE_NAME_MAX + 1];	/* "": any */
	unsigned int pipes;		/* 0: as many as PIPES says */
	uint16_t cost;
	bool backup;
};

struct path_set {
	unsigned int n;
	struct path_spec path[PATHS_MAX];
};

/*
 * Gives @pipes to each path that has no number of its own. 0, or -1 with a line in @why:
 * together they are more than PIPES_MAX, or all are backups.
 */
int path_set_fit(struct path_set *set, unsigned int pipes, char *why,
		 size_t why_len);

/* The number of the path whose name is the first @len bytes of @name; set->n: there is none. */
unsigned int path_set_number(const struct path_set *set, const char *name,
			     size_t len);

/* Of all paths; @pipes where nobody named one. */
unsigned int path_set_pipes(const struct path_set *set, unsigned int pipes);
/* The number of the path that pipe @index is on. */
unsigned int path_set_of(const struct path_set *set, unsigned int index);
/* The index of the first pipe on path @number. */
unsigned int path_set_first(const struct path_set *set, unsigned int number);
/* The path that is tried first, second, ...: those that are no backups come first. */
unsigned int path_set_turn(const struct path_set *set, unsigned int turn);
/* The name of path @number, or NULL. */
const char *path_set_name(const struct path_set *set, unsigned int number);

#endif
