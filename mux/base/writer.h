/* SPDX-License-Identifier: MIT */
/*
 * Writes to a descriptor without ever waiting for whoever reads it: a pipe that
 * is full, a terminal that was stopped.
 *
 * O_NONBLOCK belongs to the open file, which may be shared with others (stderr
 * with the shell, say). So the file is opened once more, or sockets are asked
 * for each write.
 */
#ifndef TM3_WRITER_H
#define TM3_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct writer {
	int fd;			/* -1: all writes fail */
	bool opened;		/* @fd is a second opening of what was given */
	bool is_socket;
	bool may_wait;		/* it has to be asked first whether it takes */
};

/* @fd must stay open; the writer does not close it. */
void writer_init(struct writer *w, int fd);
void writer_fini(struct writer *w);

/* How many bytes were taken, or -errno: -EAGAIN if none can be at the moment. */
ssize_t writer_write(const struct writer *w, const void *data, size_t len);

#endif
