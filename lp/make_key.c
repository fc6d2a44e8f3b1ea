/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "make_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../mux/options/command_line.h"
#include "../mux/options/key_file.h"

/* The whole line, or why there is none. 0 or -1. */
static int line_of(int argc, char **argv, char line[KEY_LINE_MAX], char *why,
		   size_t why_len)
{
	char host[KEY_NAME_MAX + 1] = "";

	if (argc > 3) {
		snprintf(why, why_len, "'%s' is one argument too many", argv[3]);
		return -1;
	}
	if (argc == 3)
		return key_make(line, argv[2], why, why_len);
	if (gethostname(host, KEY_NAME_MAX) || !*host)
		strcpy(host, "lp");
	return key_make(line, host, why, why_len);
}

bool make_key(int argc, char **argv, int *status)
{
	char line[KEY_LINE_MAX], why[256];

	if (argc < 2 || strcmp(argv[1], "--make-key") != 0)
		return false;
	*status = EXIT_WRONG_ARGUMENTS;
	if (line_of(argc, argv, line, why, sizeof(why)))
		fprintf(stderr, "lp: --make-key: %s\n", why);
	else
		*status = puts(line) < 0 || fflush(stdout) ? EXIT_FAILURE :
			  EXIT_SUCCESS;
	explicit_bzero(line, sizeof(line));
	return true;
}
