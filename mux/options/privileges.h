/* SPDX-License-Identifier: MIT */
/*
 * What a proxy gives up once it has what it was started for: its user, and calls
 * of the kernel. Each returns 0, or -1 with a reason in @why.
 */
#ifndef TM3_PRIVILEGES_H
#define TM3_PRIVILEGES_H

#include <stddef.h>

struct settings;

int privileges_set_user(struct settings *settings, const char *value, char *why,
			size_t why_len);
int privileges_set_seccomp(struct settings *settings, const char *value,
			   char *why, size_t why_len);

#endif
