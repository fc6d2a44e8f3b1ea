/* SPDX-License-Identifier: MIT */
/*
 * Sizes that are compared, and what is left of one.
 */
#ifndef TM3_SIZES_H
#define TM3_SIZES_H

#include <stddef.h>

static inline size_t size_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* @a less @b, or nothing. */
static inline size_t size_less(size_t a, size_t b)
{
	return a > b ? a - b : 0;
}

#endif
