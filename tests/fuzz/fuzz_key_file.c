/* SPDX-License-Identifier: MIT */
/*
 * A file of keys of arbitrary bytes. Asserted: it is taken as a whole, or there is no key and
 * a reason; names are printable and differ, secrets are neither short nor long, and each is
 * found by its name alone; a file that others may read is never taken; and one more line with a
 * name that is there already is refused by its number.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mux/options/key_file.h"
#include "check.h"
#include "input.h"

enum { WHY = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 0, or -1 with a reason and no key. */
static int read_all(struct keys *keys, const char *path, char why[WHY])
{
	int err;

	*why = '\0';
	err = keys_read(keys, path, why, WHY);
	check(!err == !*why && !err == (keys->n > 0));
	return err;
}

static void check_key(const struct keys *keys, const struct key *key)
{
	size_t len = strlen(key->name), i;

	check(len && len <= KEY_NAME_MAX);
	for (i = 0; i < len; i++)
		check(key->name[i] > ' ' && key->name[i] < 0x7f);
	check(key->len >= KEY_MIN && key->len <= KEY_MAX);
	check(keys_find(keys, key->name, len) == key);
	check(keys_find(keys, key->name, len - 1) != key);
	check(keys_have(keys, key));
}

static void check_doubled(const struct input_file *file, const struct key *key)
{
	static const char secret[] = "AAAAAAAAAAAAAAAAAAAAAA==";
	char why[WHY], where[64];
	struct keys again;

	check(dprintf(file->fd, "\n%s %s\n", key->name, secret) > 0);
	check(read_all(&again, file->path, why) == -1);
	snprintf(where, sizeof(where), "%s:%u: ", file->path,
		 file->lines + 1);
	check(!strncmp(why, where, strlen(where)));
}

static void take(const struct input_file *file)
{
	struct keys keys, closed;
	char why[WHY];
	unsigned int i;

	check(!fchmod(file->fd, 0604));
	check(read_all(&closed, file->path, why) == -1);
	check(!fchmod(file->fd, 0600));
	if (read_all(&keys, file->path, why))
		return;
	for (i = 0; i < keys.n; i++)
		check_key(&keys, &keys.key[i]);
	check(keys_same(&keys, &keys));
	check_doubled(file, &keys.key[0]);
	keys_fini(&keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_file file;

	input_file_open(&file, data, size);
	take(&file);
	input_file_close(&file);
	return 0;
}
