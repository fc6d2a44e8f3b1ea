/* SPDX-License-Identifier: MIT */
/*
 * Which pipes may join a session, by what their HELLO says; and what both ends
 * speak. A pipe has an index below the session's count, and an incarnation that
 * grows with each redial: so a HELLO that was under way for long cannot take
 * the place of a later one.
 */
#ifndef TM3_ADMISSION_H
#define TM3_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "../wire/wire_ext.h"

struct admission {
	uint8_t pipes;		/* of the session; 0 before the first HELLO */
	uint64_t known;		/* a bit for each index that came */
	uint32_t last[WIRE_EXT_PIPES_MAX];	/* incarnation, by index */
};

enum admission_verdict {
	ADMISSION_OK,
	ADMISSION_COUNT,	/* not the count of the session's first pipe */
	ADMISSION_OLD,		/* an incarnation not above the last */
	ADMISSION_PATH,		/* the number of no path */
};

/* Is the path that @hello names one, if it names any? */
bool admission_knows_path(const struct wire_hello *hello);
/* @hello was found sound by wire_ext_get(). */
enum admission_verdict admission_enter(struct admission *admission,
				       const struct wire_hello *hello);

/* The features to be used, common to both; 0: version 1 is not whole. */
uint32_t admission_features(uint32_t offered, uint32_t own);

#endif
