/* SPDX-License-Identifier: MIT */
#include "lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int lines_read(const char *path, int (*take)(void *into, char *line), void *into,
	       const char *wrong, char *why, size_t why_len)
{
	FILE *in = fopen(path, "re");
	char line[128];
	int number = 0, ret = 0;

	if (!in) {
		ret = -errno;
		snprintf(why, why_len, "%s: %s", path, strerror(-ret));
		return ret;
	}
	while (!ret && fgets(line, sizeof(line), in)) {
		number++;
		ret = take(into, line);
	}
	fclose(in);
	if (ret)
		snprintf(why, why_len, "%s:%d: %s", path, number, wrong);
	return ret;
}
