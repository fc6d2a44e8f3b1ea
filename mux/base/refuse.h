/* SPDX-License-Identifier: MIT */
/* Why something that was asked for cannot be: one line, for whoever asked. */
#ifndef TM3_REFUSE_H
#define TM3_REFUSE_H

#include <stddef.h>

/* Writes it to @why. Returns -1. */
int refuse(char *why, size_t why_len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
