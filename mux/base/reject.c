/* SPDX-License-Identifier: MIT */
#include "reject.h"

#include <stdarg.h>
#include <stdio.h>

int reject(char *why, size_t why_len, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, why_len, fmt, args);
	va_end(args);
	return -1;
}
