/* SPDX-License-Identifier: MIT */
/* What stands behind a word that is counted: "1 pipe", "2 pipes". */
#ifndef TM3_PLURAL_H
#define TM3_PLURAL_H

#include <stddef.h>

static inline const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

#endif
