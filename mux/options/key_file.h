/* SPDX-License-Identifier: MIT */
/*
 * A file of keys, each with the name of who has it:
 *
 *	# laptop of the house
 *	laptop dGhpcyBpcyBub3QgYSBrZXkgdGhhdCBvbmUgdXNlcyE=
 *
 * Whoever has a key may open pipes under its name. So nobody else may read the
 * file: for others it is closed, and only its owner may write it.
 */
#ifndef TM3_KEY_FILE_H
#define TM3_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	KEY_NAME_MAX = 64,
	KEY_MIN = 16,		/* bytes of a secret */
	KEY_MAX = 64,
	KEY_MADE = 32,
	KEY_LINE_MAX = KEY_NAME_MAX + 1 + (KEY_MAX + 2) / 3 * 4 + 1,
};

struct key {
	char name[KEY_NAME_MAX + 1];
	size_t len;
	uint8_t secret[KEY_MAX];
};

struct keys {
	struct key *key;
	unsigned int n;
};

struct settings;

/*
 * Adds what @path has to @keys, which are empty. Returns 0, or -1 with a reason in
 * @why that names the file, and the line where it is one's fault; then there are none.
 */
int keys_read(struct keys *keys, const char *path, char *why, size_t why_len);
/*
 * The same for a command line: what @settings name, or nothing. @built: this
 * program can encrypt. What does not go together with keys is rejected.
 */
int keys_of_settings(struct keys *keys, const struct settings *settings,
		     bool built, char *why, size_t why_len);
/* Wipes them. */
void keys_fini(struct keys *keys);

/* NULL: there is none of that name. */
const struct key *keys_find(const struct keys *keys, const char *name,
			    size_t len);
bool key_same(const struct key *a, const struct key *b);
/* Is @key one of them still, by name and bytes? */
bool keys_have(const struct keys *keys, const struct key *key);
/* In any order. */
bool keys_same(const struct keys *a, const struct keys *b);

/* A line, with a new secret. 0, or -1 with a reason in @why. */
int key_make(char line[KEY_LINE_MAX], const char *name, char *why,
	     size_t why_len);

#endif
