/* SPDX-License-Identifier: MIT */
#include "privileges.h"

#include <errno.h>
#include <string.h>

#include "../base/reject.h"
#include "../base/user.h"
#include "../settings/settings.h"

int privileges_set_user(struct settings *s, const char *value, char *why,
			size_t why_len)
{
	struct user user;
	int err = strlen(value) < sizeof(s->user) ? user_find(&user, value) :
		  -ENOENT;

	if (err == -ENOENT)
		return reject(why, why_len, "--user: there is no user '%s'",
			      value);
	if (err)
		return reject(why, why_len, "--user: '%s': %s", value,
			      strerror(-err));
	if (!user.uid)
		return reject(why, why_len,
			      "--user: '%s' is allowed everything", value);
	strcpy(s->user, value);
	return 0;
}

int privileges_set_seccomp(struct settings *s, const char *value, char *why,
			   size_t why_len)
{
	s->seccomp = !strcmp(value, "on");
	if (s->seccomp || !strcmp(value, "off"))
		return 0;
	return reject(why, why_len, "--seccomp: '%s' is neither on nor off",
		      value);
}
