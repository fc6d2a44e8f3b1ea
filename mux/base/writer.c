/* SPDX-License-Identifier: MIT */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe, a terminal or a device: opened once more, if that is allowed. */
static void open_again(struct writer *w, int fd)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	w->opened = again >= 0;
	w->may_wait = !w->opened;
	w->fd = w->opened ? again : fd;
}

void writer_init(struct writer *w, int fd)
{
	struct stat st;

	*w = (struct writer){ .fd = -1 };
	if (fstat(fd, &st) < 0)
		return;
	w->fd = fd;
	w->is_socket = S_ISSOCK(st.st_mode);
	if (!w->is_socket && !S_ISREG(st.st_mode))
		open_again(w, fd);
}

void writer_fini(struct writer *w)
{
	if (w->opened)
		close(w->fd);
	w->fd = -1;
	w->opened = false;
}

/* A pipe that poll() calls writable takes PIPE_BUF bytes without waiting. */
static bool takes(const struct writer *w, size_t *len)
{
	struct pollfd p = { .fd = w->fd, .events = POLLOUT };

	if (*len > PIPE_BUF)
		*len = PIPE_BUF;
	return poll(&p, 1, 0) == 1;
}

ssize_t writer_write(const struct writer *w, const void *data, size_t len)
{
	ssize_t wrote;

	if (w->fd < 0)
		return -EBADF;
	if (w->may_wait && !takes(w, &len))
		return -EAGAIN;
	if (w->is_socket)
		wrote = send(w->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		wrote = write(w->fd, data, len);
	return wrote < 0 ? -errno : wrote;
}
