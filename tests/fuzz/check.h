/* SPDX-License-Identifier: MIT */
/* An assertion that stays in whatever the build, and says where it stood. */
#ifndef TM3_FUZZ_CHECK_H
#define TM3_FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define check(holds) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "%s:%d: %s does not hold\n", \
				__FILE__, __LINE__, #holds); \
			abort(); \
		} \
	} while (0)

#endif
