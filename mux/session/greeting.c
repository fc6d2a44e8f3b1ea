/* SPDX-License-Identifier: MIT */
#include "greeting.h"

#include <unistd.h>

#include "session.h"

struct session *greet_baseline(struct engine *engine,
			       const struct session_role *role, void *owner,
			       const char *peer, const int *fds,
			       unsigned int n)
{
	struct session *s = session_new(engine, role, owner, peer);
	int err = s ? 0 : -1;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!err)
			err = session_add_pipe(s, fds[i]);
		else
			close(fds[i]);
	}
	if (!err) {
		session_start(s);
		return s;
	}
	session_free(s);
	return NULL;
}
