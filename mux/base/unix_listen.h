/* SPDX-License-Identifier: MIT */
/*
 * A UNIX socket with a path of its own in the file system, to listen on.
 *
 * What a process of the same user left there when it was killed is replaced:
 * a socket that nobody listens on. Anything else in the way stays. Of several
 * processes that come at the same moment one has it.
 */
#ifndef TM3_UNIX_LISTEN_H
#define TM3_UNIX_LISTEN_H

#include <stddef.h>
#include <sys/types.h>

struct unix_path {
	const char *path;
	dev_t device;		/* what was made, so that nobody else's goes */
	ino_t inode;
};

/*
 * A listening socket, non-blocking, whose file has this @mode. Or -errno with a
 * reason in @why, which does not name @path: -EADDRINUSE where something is in the
 * way, -EBUSY where another process is about to listen there. @path must stay
 * where it is.
 */
int unix_listen(struct unix_path *made, const char *path, mode_t mode,
		char *why, size_t why_len);
/*
 * It is @user's from now on, who may remove it where the directory lets them; "" or who is
 * not known: it stays. 0 or -errno.
 */
int unix_give(const struct unix_path *made, const char *user);
/*
 * Removes it, if it still is what was made and may be. Before the socket is closed: who finds
 * nobody listening there may put another one in its place, with the same inode.
 */
void unix_unlink(const struct unix_path *made);

#endif
