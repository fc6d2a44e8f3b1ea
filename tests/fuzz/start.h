/* SPDX-License-Identifier: MIT */
/*
 * The start of a program: its words, of which a file may say more, the addresses among them,
 * and what it says on stderr, held against its promise of one clear line.
 */
#ifndef TM3_FUZZ_START_H
#define TM3_FUZZ_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>

struct given {
	char *argv[8];
	int argc;
};

/* --config @path, unless NULL; and @arguments, as many as there are before a NULL. */
struct given given_words(char *program, char *path, char *const *arguments);

/* It is of IPv4 or IPv6, and as long as these are. */
void check_address(const struct sockaddr_storage *addr, socklen_t len);

struct said {
	FILE *real;	/* stderr, which is this instead until said_end() */
	char *text;
	size_t len;
};

void said_begin(struct said *said);
void said_end(struct said *said);
void said_free(struct said *said);

/* Where it was @wrong, one line that begins with @program; else nothing. The line without that. */
const char *said_why(struct said *said, const char *program, bool wrong);

#endif
