/* SPDX-License-Identifier: MIT */
#include "settings.h"

const char *reinject_mode_name(enum reinject_mode mode)
{
	static const char *const names[] = {
		[REINJECT_OFF] = "off",
		[REINJECT_TIMELY] = "timely",
		[REINJECT_MPFLEX] = "mpflex",
	};

	return (size_t)mode < sizeof(names) / sizeof(names[0]) ? names[mode] : NULL;
}
