/* SPDX-License-Identifier: MIT */
/*
 * A UNIX socket by which LP's user, and nobody else (0600), says what path_control.h knows.
 *
 * A client may say many lines. It is sent away when it says no line, or does not read what it
 * is told; and of more than CONTROL_CLIENTS the one that was silent longest.
 */
#ifndef TM3_CONTROL_SOCKET_H
#define TM3_CONTROL_SOCKET_H

#include "../mux/base/list.h"
#include "../mux/base/unix_listen.h"
#include "path_control.h"

struct listener;
struct log;
struct loop;

enum { CONTROL_CLIENTS = 8, CONTROL_LINE = 256 };

struct control_socket {
	struct loop *loop;
	struct path_control *control;
	struct listener *listener;	/* NULL: there is none */
	struct unix_path path;
	struct list clients;	/* who was silent longest comes first */
	unsigned int nclients;
};

/*
 * Listens at @path, which must stay; "": it does not. The socket is @user's, if not "". 0 or
 * -errno, after it said what is wrong.
 */
int control_socket_open(struct control_socket *cs, struct loop *loop,
			struct log *log, struct path_control *control,
			const char *path, const char *user);
/* May be called for one that is all zeros. */
void control_socket_close(struct control_socket *cs);

#endif
