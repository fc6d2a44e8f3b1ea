/* SPDX-License-Identifier: MIT */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int number_parse(const char *text, double *value)
{
	char *end = NULL;
	double v;

	/* strtod() also takes blanks, "inf", "nan" and hexadecimals. */
	if (!*text || strspn(text, "0123456789.eE+-") != strlen(text))
		return -EINVAL;
	v = strtod(text, &end);
	if (end == text || *end || !isfinite(v))
		return -EINVAL;
	*value = v;
	return 0;
}

int number_whole(const char *text, char **end, uint64_t *value)
{
	unsigned long long v;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, end, 10);
	if (errno)
		return -errno;
	*value = v;
	return 0;
}

int number_unit(const char **text, const char *unit, double *value)
{
	size_t len = strspn(*text, "0123456789.");
	char digits[32];

	if (!len || len >= sizeof(digits) ||
	    strncmp(*text + len, unit, strlen(unit)) != 0)
		return -EINVAL;
	memcpy(digits, *text, len);
	digits[len] = '\0';
	if (number_parse(digits, value) < 0)
		return -EINVAL;
	*text += len + strlen(unit);
	return 0;
}
