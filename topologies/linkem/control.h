/* SPDX-License-Identifier: MIT */
/*
 * A Unix stream socket on which each line is a command and each answer is a
 * line. Reading never blocks; a client that does not read its answers, or
 * writes a line without end, is cut off.
 */
#ifndef LINKEM_CONTROL_H
#define LINKEM_CONTROL_H

#include <stddef.h>
#include <stdio.h>

#include "../../mux/base/unix_listen.h"

enum { CONTROL_CLIENTS = 16, CONTROL_LINE_MAX = 16384 };

struct control_client {
	int fd;			/* -1: free */
	size_t n;
	char line[CONTROL_LINE_MAX];
};

struct control {
	int epoll;		/* readable: something to handle */
	int listener;
	struct unix_path path;	/* of the listener's file, if it has one */
	struct control_client client[CONTROL_CLIENTS];
	/* Writes one line of answer to @line, which has no end of line. */
	void (*answer)(void *arg, char *line, FILE *out);
	void *arg;
};

/*
 * @path may be NULL (nothing ever comes) or @NAME for an abstract socket.
 * What is left of a dead process at @path is replaced. 0, or -1 with the reason in @why.
 */
int control_open(struct control *c, const char *path, char *why,
		 size_t why_len);
void control_close(struct control *c);

void control_handle(struct control *c);

#endif
