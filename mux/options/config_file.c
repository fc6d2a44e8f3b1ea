/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/reject.h"

enum { FILE_MAX = 1 << 20 };

static const char blanks[] = " \t\r\v\f";

/* All there is, and a byte more: so much of a pipe or device is too long. */
static int read_all(struct config_file *f, int fd, size_t size)
{
	ssize_t got;

	while (f->len < size) {
		got = read(fd, f->text + f->len, size - f->len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		f->len += (size_t)got;
	}
	return 0;
}

static int take_text(struct config_file *f, const char *path, int err,
		     char *why, size_t why_len)
{
	if (err)
		return reject(why, why_len, "%s: %s", path, strerror(-err));
	if (f->len > FILE_MAX)
		return reject(why, why_len, "%s: is longer than %d bytes",
			      path, FILE_MAX);
	if (memchr(f->text, '\0', f->len))
		return reject(why, why_len, "%s: is not a text", path);
	f->text[f->len] = '\0';
	f->at = f->text;
	return 0;
}

int config_file_open(struct config_file *f, const char *path, char *why,
		     size_t why_len)
{
	int fd, err;

	memset(f, 0, sizeof(*f));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return reject(why, why_len, "%s: %s", path, strerror(errno));
	f->text = malloc(FILE_MAX + 2);
	if (f->text)
		err = take_text(f, path, read_all(f, fd, FILE_MAX + 1), why,
				why_len);
	else
		err = reject(why, why_len, "%s: %s", path, strerror(ENOMEM));
	close(fd);
	if (err)
		config_file_close(f);
	return err;
}

int config_file_stays(const char *path, char *why, size_t why_len)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return reject(why, why_len, "%s: %s", path, strerror(errno));
	if (S_ISREG(st.st_mode))
		return 0;
	return reject(why, why_len, "%s: is no regular file, so it cannot be "
		      "read again", path);
}

void config_file_close(struct config_file *f)
{
	if (f->text)
		explicit_bzero(f->text, f->len);	/* keys, maybe */
	free(f->text);
	memset(f, 0, sizeof(*f));
}

/* Ends @line before its last blanks. */
static void trim(char *line)
{
	size_t n = strlen(line);

	while (n && strchr(blanks, line[n - 1]))
		n--;
	line[n] = '\0';
}

int config_file_next(struct config_file *f, struct config_line *line)
{
	while (f->at) {
		char *text = strsep(&f->at, "\n");
		char *value;

		f->lines++;
		trim(text);
		text += strspn(text, blanks);
		if (!*text || *text == '#')
			continue;
		value = text + strcspn(text, blanks);
		if (*value) {
			*value++ = '\0';
			value += strspn(value, blanks);
		}
		*line = (struct config_line){
			.number = f->lines,
			.name = text,
			.value = *value ? value : NULL,
		};
		return 1;
	}
	return 0;
}
