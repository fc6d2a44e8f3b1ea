/* SPDX-License-Identifier: MIT */
/* Values on a command line: numbers and sizes. All return 0 or -1. */
#ifndef TM3_VALUES_H
#define TM3_VALUES_H

#include <stddef.h>
#include <stdint.h>

/* A number within limits, such as 0.5 or 1e3. */
int value_number(const char *text, double min, double max, double *value);

/* Digits alone; what follows them is in @end. */
int value_digits(const char *text, uint64_t *value, const char **end);

/* A whole number within limits, and nothing behind it. */
int value_whole(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* A size in bytes: 4096, 64K, 2M. */
int value_bytes(const char *text, size_t *value);

#endif
