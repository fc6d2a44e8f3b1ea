/* SPDX-License-Identifier: MIT */
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int value_number(const char *text, double min, double max, double *value)
{
	char *end;
	double number;

	if (!*text || text[strspn(text, "0123456789.eE+-")])
		return -1;
	number = strtod(text, &end);
	if (*end || !(number >= min && number <= max))
		return -1;
	*value = number;
	return 0;
}

int value_digits(const char *text, uint64_t *value, const char **end)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits)
		return -1;
	errno = 0;
	*value = strtoull(text, NULL, 10);
	*end = text + digits;
	return errno ? -1 : 0;
}

int value_whole(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *end;
	uint64_t number;

	if (value_digits(text, &number, &end) || *end || number < min ||
	    number > max)
		return -1;
	*value = number;
	return 0;
}

int value_bytes(const char *text, size_t *value)
{
	const char *end;
	uint64_t number;
	int shift = 0;

	if (value_digits(text, &number, &end))
		return -1;
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	if (end[shift != 0] || number > SIZE_MAX >> shift)
		return -1;
	*value = (size_t)number << shift;
	return 0;
}
