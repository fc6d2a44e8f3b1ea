/* SPDX-License-Identifier: MIT */
/*
 * Where pipes come in and wait until they are as many as a session needs.
 *
 * In baseline a pipe says nothing about itself, so its address must do: N pipes
 * from one address form a session. Until a group is complete nothing is read
 * from its pipes; one that is closed meanwhile leaves. A group that stays
 * incomplete is closed.
 *
 * Pipes of two local proxies behind one address must not form one session, or
 * each gets bytes of the other. So a group is taken from one burst of dialling:
 *
 *  - It waits for a moment, four times the longest gap between two of its
 *    pipes, whether more of them come.
 *  - If there are more than N then, and the last N came apart from those before
 *    them, the last N form the session, and those before are closed: they were
 *    left over from an earlier attempt.
 *  - If the last N did not come apart, nobody can tell whose they are. All are
 *    reset; local proxies dial again, at different times. So it also ends for
 *    one local proxy that was started for more pipes than rp.
 *
 * All of it is bounded. Sessions are by ops->objection(). Of one peer (see payer.h) as
 * many pipes wait as two sessions have, LOBBY_EACH at least: with fewer it could not be
 * seen that there are two. If there are more at one address they are reset; if they come
 * from several addresses that count for one, its oldest group is closed. Of more pipes
 * than LOBBY_WAITING_MAX in all a group goes as places.h says, so that those that never
 * become complete do not shut out others. When descriptors run out the listeners pause
 * for a moment.
 */
#ifndef TM3_RP_LOBBY_H
#define TM3_RP_LOBBY_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/list.h"
#include "../mux/base/loop.h"
#include "../mux/settings/incident.h"
#include "entrances.h"
#include "places.h"

enum {
	LOBBY_WAITING_MAX = 1024,	/* pipes */
	LOBBY_EACH = 64,		/* of one peer, or of two sessions */
	LOBBY_SETTLE_MIN_MS = 4,	/* whether more pipes come */
	LOBBY_SETTLE_MAX_MS = 250,
	LOBBY_PATIENCE_S = 10,		/* until a group must be complete */
};

struct access;
struct lobby;
struct log;
struct incidents;

struct lobby_ops {
	/* Why there can be no other session with @peer, or NULL; @what: at which limit. */
	const char *(*objection)(struct lobby *l,
				 const struct sockaddr_storage *peer,
				 enum incident *what);
	/* @n pipes of one peer, open and non-blocking: theirs from now on. */
	void (*complete)(struct lobby *l, const struct sockaddr_storage *peer,
			 const int *fds, unsigned int n);
};

struct lobby {
	const struct lobby_ops *ops;
	struct loop *loop;
	struct log *log;
	struct incidents *incidents;
	const struct access *access;
	unsigned int pipes;	/* of a session */
	int64_t patience;	/* ns, LOBBY_PATIENCE_S but in tests */
	struct entrances entrances;	/* to be opened by the owner */
	struct list groups;
	struct places waiting;	/* pipes in all groups, */
	unsigned int max, each;	/* as many as these; @max may be less in tests */
};

void lobby_init(struct lobby *l, const struct lobby_ops *ops, struct loop *loop,
		struct log *log, struct incidents *incidents,
		const struct access *access, unsigned int pipes);

/* Stop listening, and close every waiting pipe. */
void lobby_close(struct lobby *l);

/* Who waits, for a person. */
void lobby_print(const struct lobby *l, FILE *out);

#endif
