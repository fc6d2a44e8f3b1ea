/* SPDX-License-Identifier: MIT */
/*
 * What is different where a program was told again what it is to do, by name, such as
 * "--allow, --deny"; "" if nothing is.
 */
#ifndef TM3_CHANGES_H
#define TM3_CHANGES_H

enum { CHANGES_TEXT = 256 };

struct changes {
	char taken[CHANGES_TEXT];	/* can change, and did */
	char kept[CHANGES_TEXT];	/* differ, but cannot change */
};

/* One more for such a list. */
void changes_add(char list[CHANGES_TEXT], const char *dashes,
		 const char *name);

#endif
