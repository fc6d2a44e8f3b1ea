/* SPDX-License-Identifier: MIT */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void line(const char *format, va_list args, const char *end)
{
	fputs("tm3ctl: ", stderr);
	vfprintf(stderr, format, args);
	fputs(end, stderr);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(format, args, "\n");
	va_end(args);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(format, args, "\n");
	va_end(args);
	exit(1);
}

void wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(format, args, " (tm3ctl --bpf --help)\n");
	va_end(args);
	exit(2);
}
