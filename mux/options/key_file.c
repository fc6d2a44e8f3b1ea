/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "key_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "../base/core_dumps.h"
#include "../base/reject.h"
#include "../settings/settings.h"
#include "config_file.h"

enum { BITS = 6, QUAD = 4 };

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* --- base64 --- */

/* The bytes, no more than KEY_MAX + 1 of them; -1: it is something else. */
static int decode(const char *text, uint8_t bytes[KEY_MAX + 1])
{
	size_t len = strlen(text), n = 0, i;
	uint32_t bits = 0;
	unsigned int have = 0;

	if (!len || len % QUAD)
		return -1;
	while (len && text[len - 1] == '=')
		len--;
	if (strlen(text) - len > 2)
		return -1;
	for (i = 0; i < len; i++) {
		const char *digit = strchr(digits, text[i]);

		if (!digit)
			return -1;
		bits = bits << BITS | (uint32_t)(digit - digits);
		have += BITS;
		if (have < 8)
			continue;
		have -= 8;
		if (n <= KEY_MAX)
			bytes[n++] = (uint8_t)(bits >> have);
	}
	return (int)n;
}

static void encode(char *text, const uint8_t *bytes, size_t len)
{
	size_t i, j;

	for (i = 0; i < len; i += 3) {
		uint32_t bits = (uint32_t)bytes[i] << 16 |
				(i + 1 < len ? bytes[i + 1] << 8 : 0) |
				(i + 2 < len ? bytes[i + 2] : 0);

		for (j = 0; j < QUAD; j++)
			*text++ = i + j > len ? '=' :
				  digits[bits >> (18 - BITS * j) & 63];
	}
	*text = '\0';
}

/* --- names --- */

/* It stands in logs, and in front of a blank. */
static bool is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > KEY_NAME_MAX)
		return false;
	while (*name > ' ' && *name < 0x7f)
		name++;
	return !*name;
}

const struct key *keys_find(const struct keys *keys, const char *name,
			    size_t len)
{
	unsigned int i;

	for (i = 0; i < keys->n; i++) {
		if (strlen(keys->key[i].name) == len &&
		    !memcmp(keys->key[i].name, name, len))
			return &keys->key[i];
	}
	return NULL;
}

static bool has_secret(const struct key *key, const uint8_t *secret, size_t len)
{
	return key->len == len && !memcmp(key->secret, secret, len);
}

bool key_same(const struct key *a, const struct key *b)
{
	return has_secret(a, b->secret, b->len);
}

bool keys_have(const struct keys *keys, const struct key *key)
{
	const struct key *found = keys_find(keys, key->name, strlen(key->name));

	return found && key_same(found, key);
}

bool keys_same(const struct keys *a, const struct keys *b)
{
	unsigned int i;

	for (i = 0; i < a->n; i++) {
		const struct key *key = &a->key[i];
		const struct key *other = keys_find(b, key->name,
						    strlen(key->name));

		if (!other || !key_same(key, other))
			return false;
	}
	return a->n == b->n;
}

/* --- a file --- */

static int add(struct keys *keys, const char *name, const uint8_t *secret,
	       size_t len)
{
	struct key *more = calloc(keys->n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	if (keys->n)
		memcpy(more, keys->key, keys->n * sizeof(*more));
	strcpy(more[keys->n].name, name);
	memcpy(more[keys->n].secret, secret, len);
	more[keys->n].len = len;
	if (keys->key)
		explicit_bzero(keys->key, keys->n * sizeof(*more));
	free(keys->key);
	keys->key = more;
	keys->n++;
	return 0;
}

static const struct key *find_secret(const struct keys *keys, const uint8_t *secret, size_t len)
{
	for (unsigned int i = 0; i < keys->n; i++) {
		if (has_secret(&keys->key[i], secret, len))
			return &keys->key[i];
	}
	return NULL;
}

/*
 * @len: of @secret, or negative where that is no base64. Who had one of two names for a secret
 * could show the other, and would still come in when its own line is gone.
 */
static int take_secret(struct keys *keys, const char *name, const uint8_t *secret,
		       int len, char *why, size_t why_len)
{
	const struct key *other;

	if (len < 0)
		return reject(why, why_len, "the key of %s is not base64", name);
	if (len < KEY_MIN || len > KEY_MAX)
		return reject(why, why_len,
			      "the key of %s is too %s: %d to %d bytes, in base64",
			      name, len < KEY_MIN ? "short" : "long", KEY_MIN,
			      KEY_MAX);
	other = find_secret(keys, secret, (size_t)len);
	if (other)
		return reject(why, why_len, "the key of %s is that of %s", name, other->name);
	if (add(keys, name, secret, (size_t)len))
		return reject(why, why_len, "%s", strerror(ENOMEM));
	return 0;
}

/* Returns 0, or -1 with what is wrong with @line in @why. */
static int take_line(struct keys *keys, const struct config_line *line,
		     char *why, size_t why_len)
{
	uint8_t secret[KEY_MAX + 1];
	int len, err;

	if (!is_name(line->name))
		return reject(why, why_len, "a name is 1 to %d printable characters",
			      KEY_NAME_MAX);
	if (keys_find(keys, line->name, strlen(line->name)))
		return reject(why, why_len, "there is another key of %s",
			      line->name);
	len = line->value ? decode(line->value, secret) : 0;
	err = take_secret(keys, line->name, secret, len, why, why_len);
	explicit_bzero(secret, sizeof(secret));
	return err;
}

static int take_lines(struct keys *keys, struct config_file *file,
		      const char *path, char *why, size_t why_len)
{
	struct config_line line;
	char reason[160];

	while (config_file_next(file, &line)) {
		if (take_line(keys, &line, reason, sizeof(reason)))
			return reject(why, why_len, "%s:%u: %s", path,
				      line.number, reason);
	}
	return keys->n ? 0 : reject(why, why_len, "%s: there is no key in it",
				    path);
}

static int check_mode(const char *path, char *why, size_t why_len)
{
	struct stat st;

	if (stat(path, &st))
		return reject(why, why_len, "%s: %s", path, strerror(errno));
	if (st.st_mode & (S_IRWXO | S_IWGRP))
		return reject(why, why_len,
			      "%s: others may read or write it (mode %03o); "
			      "chmod 600 closes it", path,
			      (unsigned int)st.st_mode & 0777);
	return 0;
}

int keys_read(struct keys *keys, const char *path, char *why, size_t why_len)
{
	struct config_file file;
	int err;

	*keys = (struct keys){ 0 };
	err = core_dumps_off();
	if (err)
		return reject(why, why_len, "%s: core dumps would have its keys "
			      "in them, and cannot be switched off: %s", path,
			      strerror(-err));
	if (config_file_stays(path, why, why_len) ||
	    check_mode(path, why, why_len) ||
	    config_file_open(&file, path, why, why_len))
		return -1;
	err = take_lines(keys, &file, path, why, why_len);
	config_file_close(&file);
	if (err)
		keys_fini(keys);
	return err;
}

int keys_of_settings(struct keys *keys, const struct settings *settings,
		     bool built, char *why, size_t why_len)
{
	char reason[PATH_MAX + 256];

	if (!*settings->key_file)
		return !*settings->keylog ? 0 :
		       reject(why, why_len,
			      "--keylog: without --key-file nothing is encrypted");
	if (!built)
		return reject(why, why_len,
			      "--key-file: this program was built without "
			      "OpenSSL and cannot encrypt (Debian: libssl-dev)");
	if (transport_set_has(&settings->transports, TRANSPORT_SCTP))
		return reject(why, why_len,
			      "--pipe: sctp cannot be encrypted; with "
			      "--key-file pipes are tcp or mptcp");
	if (!keys_read(keys, settings->key_file, reason, sizeof(reason)))
		return 0;
	return reject(why, why_len, "--key-file: %s", reason);
}

void keys_fini(struct keys *keys)
{
	if (keys->key)
		explicit_bzero(keys->key, keys->n * sizeof(*keys->key));
	free(keys->key);
	*keys = (struct keys){ 0 };
}

int key_make(char line[KEY_LINE_MAX], const char *name, char *why,
	     size_t why_len)
{
	uint8_t secret[KEY_MADE];
	int n;

	if (!is_name(name) || *name == '#')
		return reject(why, why_len, "'%s' is no name: 1 to %d printable characters without blanks, no # in front",
			      name, KEY_NAME_MAX);
	if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return reject(why, why_len, "there is no randomness: %s",
			      strerror(errno));
	n = snprintf(line, KEY_LINE_MAX, "%s ", name);
	encode(line + n, secret, sizeof(secret));
	explicit_bzero(secret, sizeof(secret));
	return 0;
}
