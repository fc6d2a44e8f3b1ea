/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core_dumps.h"

enum { ENTRY_MAX = 16 * 1024 };	/* of a user, with all that is said of it */

int user_find(struct user *user, const char *name)
{
	char text[ENTRY_MAX];
	struct passwd entry, *found;
	int err = getpwnam_r(name, &entry, text, sizeof(text), &found);

	if (err)
		return -err;
	if (!found)
		return -ENOENT;
	*user = (struct user){ .uid = entry.pw_uid, .gid = entry.pw_gid };
	return 0;
}

static bool is(const struct user *user)
{
	uid_t real, effective, saved;

	return !getresuid(&real, &effective, &saved) && real == user->uid &&
	       effective == user->uid && saved == user->uid;
}

/* Groups first: they are root's to give. */
static int change(const char *name, const struct user *user)
{
	if (initgroups(name, user->gid) ||
	    setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		return -errno;
	return 0;
}

int user_become(const char *name)
{
	struct user user;
	int err = user_find(&user, name);

	if (!err && !is(&user))
		err = change(name, &user);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	return err ? err : core_dumps_off();
}
