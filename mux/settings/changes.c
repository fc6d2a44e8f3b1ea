/* SPDX-License-Identifier: MIT */
#include "changes.h"

#include <stdio.h>
#include <string.h>

void changes_add(char list[CHANGES_TEXT], const char *dashes, const char *name)
{
	size_t used = strlen(list);

	snprintf(list + used, CHANGES_TEXT - used, "%s%s%.*s",
		 used ? ", " : "", dashes, (int)strcspn(name, "["), name);
}
