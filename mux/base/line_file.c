/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Ours or root's, as /dev/stdout is. Another user's may point anywhere. */
static bool is_trusted_link(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISLNK(st.st_mode) &&
	       (!st.st_uid || st.st_uid == geteuid());
}

/* A named pipe that nobody reads yet can only be opened for both. */
static int open_file(const char *path, int flags)
{
	int fd;

	flags |= O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	fd = open(path, flags | O_WRONLY, 0600);
	if (fd < 0 && errno == ENXIO)
		fd = open(path, flags | O_RDWR, 0600);
	return fd;
}

/* Also where the file was there before, and others could read it. */
static void keep_to_owner(int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		fchmod(fd, 0600);
}

int line_file_open(struct line_file *f, const char *path)
{
	int fd = open_file(path, O_NOFOLLOW);
	int err;

	if (fd < 0 && errno == ELOOP && is_trusted_link(path))
		fd = open_file(path, 0);
	if (fd < 0)
		return -errno;
	keep_to_owner(fd);
	*f = (struct line_file){ .fd = fd };
	f->out.fd = fd;		/* it does not wait, as it was opened */
	f->kept = malloc(LINE_FILE_MAX);
	f->line = f->kept ? open_memstream(&f->text, &f->text_len) : NULL;
	if (f->line)
		return 0;
	err = -errno;
	free(f->kept);
	close(fd);
	return err;
}

void line_file_close(struct line_file *f)
{
	fclose(f->line);
	free(f->text);
	free(f->kept);
	close(f->fd);
}

void line_file_end_line(struct line_file *f)
{
	bool whole = !fflush(f->line) && !ferror(f->line);

	if (whole && f->text_len > LINE_FILE_MAX - f->kept_len)
		line_file_flush(f);
	if (whole && f->text_len <= LINE_FILE_MAX - f->kept_len) {
		memcpy(f->kept + f->kept_len, f->text, f->text_len);
		f->kept_len += f->text_len;
	} else {
		f->dropped++;
	}
	clearerr(f->line);
	rewind(f->line);
}

int line_file_flush(struct line_file *f)
{
	while (f->kept_len) {
		ssize_t wrote = writer_write(&f->out, f->kept, f->kept_len);

		if (wrote == -EAGAIN || wrote == -EINTR)
			return 0;
		if (wrote < 0)
			return (int)wrote;
		f->kept_len -= (size_t)wrote;
		memmove(f->kept, f->kept + wrote, f->kept_len);
	}
	return 0;
}
