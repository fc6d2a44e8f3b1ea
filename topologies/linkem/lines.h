/* SPDX-License-Identifier: MIT */
/* A text file, line by line. */
#ifndef LINKEM_LINES_H
#define LINKEM_LINES_H

#include <stddef.h>

/*
 * Each line goes to @take, which may write into it, and whose -errno ends it. 0, or -errno with one
 * line in @why: the file and why it cannot be read, or the line's number and @wrong.
 */
int lines_read(const char *path, int (*take)(void *into, char *line), void *into,
	       const char *wrong, char *why, size_t why_len);

#endif
