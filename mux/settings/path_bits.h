/* SPDX-License-Identifier: MIT */
/*
 * Some paths of a session: bit i is path i. No bit stands for all of them.
 */
#ifndef TM3_PATH_BITS_H
#define TM3_PATH_BITS_H

#include <stdbool.h>

static inline bool path_bits_have(unsigned int bits, unsigned int number)
{
	return !bits || bits >> number & 1;
}

#endif
