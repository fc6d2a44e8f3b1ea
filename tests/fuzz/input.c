/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "check.h"

char *input_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	check(text != NULL);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

void input_file_open(struct input_file *file, const uint8_t *data, size_t size)
{
	size_t i;

	file->fd = memfd_create("input", MFD_CLOEXEC);
	check(file->fd >= 0 && write(file->fd, data, size) == (ssize_t)size);
	file->lines = 1;
	for (i = 0; i < size; i++)
		file->lines += data[i] == '\n';
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

void input_file_close(struct input_file *file)
{
	close(file->fd);
}
