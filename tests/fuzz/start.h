/* SPDX-License-Identifier: MIT */
/*
 * The start of a program: its words, of which a file may say more, and what it says on stderr,
 * held against its promise of one clear line.
 */
#ifndef TM3_FUZZ_START_H
#define TM3_FUZZ_START_H

#include <stddef.h>
#include <stdio.h>

struct given {
	char *argv[8];
	int argc;
};

/* --config @path, unless NULL; and @arguments, as many as there are before a NULL. */
struct given given_words(char *program, char *path, char *const *arguments);

struct said {
	FILE *real;	/* stderr, which is this instead until said_end() */
	char *text;
	size_t len;
};

void said_begin(struct said *said);
void said_end(struct said *said);
void said_free(struct said *said);

/* Where it was @wrong, one line that begins with @program; else nothing. The line without that. */
const char *said_why(struct said *said, const char *program, int wrong);

#endif
