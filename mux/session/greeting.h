/* SPDX-License-Identifier: MIT */
/*
 * The greeting: which session a new pipe belongs to.
 *
 * In baseline a pipe says nothing about itself. Whoever accepted or dialled the
 * descriptors says which belong together, and a session starts when all of them
 * are there.
 */
#ifndef TM3_GREETING_H
#define TM3_GREETING_H

struct engine;
struct session;
struct session_role;

/*
 * Makes a session of @n connected sockets, which it owns from here on (also
 * when it fails and returns NULL). @peer: as logs shall name the other end.
 */
struct session *greet_baseline(struct engine *engine,
			       const struct session_role *role, void *owner,
			       const char *peer, const int *fds,
			       unsigned int n);

#endif
