/* SPDX-License-Identifier: MIT */
/* Why a value that was given is rejected: one line, for whoever gave it. */
#ifndef TM3_REJECT_H
#define TM3_REJECT_H

#include <stddef.h>

/* Writes it to @why. Returns -1. */
int reject(char *why, size_t why_len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
