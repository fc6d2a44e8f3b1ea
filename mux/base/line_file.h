/* SPDX-License-Identifier: MIT */
/*
 * A file that lines are written to, and that is never waited for.
 *
 * A line is composed in memory and then kept until the file takes it, in whole
 * lines. A file that takes nothing, such as a pipe that nobody reads, costs
 * LINE_FILE_MAX bytes and the lines that find no room.
 *
 * The file is made for its owner alone (0600). It is not opened through a
 * symbolic link that belongs to another user, who could have it point to one of
 * our files.
 */
#ifndef TM3_LINE_FILE_H
#define TM3_LINE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "writer.h"

enum { LINE_FILE_MAX = 256 * 1024 };

struct line_file {
	FILE *line;		/* where the next one is composed */
	uint64_t dropped;	/* lines that found no room */

	/* Inside. */
	char *text;		/* of @line */
	size_t text_len;
	struct writer out;
	int fd;
	char *kept;		/* of LINE_FILE_MAX: complete lines, unwritten */
	size_t kept_len;
};

/* Makes the file anew. Returns 0 or -errno. */
int line_file_open(struct line_file *f, const char *path);
void line_file_close(struct line_file *f);

/* What was written to @line is a whole line, its newline included. */
void line_file_end_line(struct line_file *f);

/* Writes what the file takes. Returns 0, or -errno when it takes no more, ever. */
int line_file_flush(struct line_file *f);

#endif
