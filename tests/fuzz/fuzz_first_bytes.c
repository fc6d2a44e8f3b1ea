/* SPDX-License-Identifier: MIT */
/*
 * First bytes of a client, whatever they are. Asserted: a name has 1 to 253 printable
 * characters that all came; and what tells one tells the same with more behind it.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lp/first_bytes.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool contains(const uint8_t *data, size_t size, const char *name,
		     size_t len)
{
	size_t i;

	for (i = 0; i + len <= size; i++) {
		if (!memcmp(data + i, name, len))
			return true;
	}
	return false;
}

static void check_name(const uint8_t *data, size_t size, const char *name)
{
	size_t len = strlen(name), i;

	check(len >= 1 && len <= HOST_MAX);
	for (i = 0; i < len; i++)
		check(isgraph((unsigned char)name[i]));
	check(contains(data, size, name, len));
}

/* In a block of its size, so that a byte too far is seen. */
static bool look(const uint8_t *data, size_t size, char name[HOST_MAX + 1])
{
	uint8_t *exact = malloc(size ? size : 1);
	bool known;

	check(exact != NULL);
	if (size)
		memcpy(exact, data, size);
	known = first_bytes_name(exact, size, name);
	free(exact);
	if (known)
		check_name(data, size, name);
	return known;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char whole[HOST_MAX + 1], part[HOST_MAX + 1];
	bool known = look(data, size, whole);

	if (look(data, size - size / 4, part))
		check(known && !strcmp(whole, part));
	return 0;
}
