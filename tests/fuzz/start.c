/* SPDX-License-Identifier: MIT */
#include "start.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mux/base/addr.h"

struct given given_words(char *program, char *path, char *const *arguments)
{
	struct given g = { .argv = { program }, .argc = 1 };

	if (path) {
		g.argv[g.argc++] = "--config";
		g.argv[g.argc++] = path;
	}
	while (*arguments)
		g.argv[g.argc++] = *arguments++;
	return g;
}

void check_address(const struct sockaddr_storage *addr, socklen_t len)
{
	check(addr->ss_family == AF_INET || addr->ss_family == AF_INET6);
	check(len == addr_size(addr));
}

void said_begin(struct said *said)
{
	FILE *instead = open_memstream(&said->text, &said->len);

	check(instead != NULL);
	said->real = stderr;
	stderr = instead;
}

void said_end(struct said *said)
{
	FILE *instead = stderr;

	stderr = said->real;
	check(!fclose(instead));
}

void said_free(struct said *said)
{
	free(said->text);
}

const char *said_why(struct said *said, const char *program, bool wrong)
{
	size_t n = strlen(program);

	if (!wrong) {
		check(!said->len);
		return "";
	}
	check(said->len > n + 3 && strlen(said->text) == said->len);
	check(strchr(said->text, '\n') == said->text + said->len - 1);
	check(!strncmp(said->text, program, n) &&
	      !strncmp(said->text + n, ": ", 2));
	said->text[said->len - 1] = '\0';
	return said->text + n + 2;
}
