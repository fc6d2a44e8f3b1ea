/* SPDX-License-Identifier: MIT */
/*
 * From where pipes of a session without a key may come. Its id is no secret on its way, so who
 * knows it need not be its LP. A pipe has to come from where the session began, or from where
 * the last one of its path came. But LP may say over another pipe (PATH) that pipes of a
 * path come from another address: then for DOORS_OPEN_S the first that does shows from which.
 */
#ifndef TM3_RP_DOORS_H
#define TM3_RP_DOORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/settings/limits.h"

struct log;
struct incidents;

enum { DOORS_OPEN_S = 30 };

struct door {
	struct sockaddr_storage from;	/* of family AF_UNSPEC: none came yet */
	int64_t open_until;		/* for one that comes from elsewhere; or 0 */
};

struct doors {
	struct log *log;
	struct incidents *incidents;
	struct sockaddr_storage home;	/* where the session began */
	struct door door[PATHS_MAX];	/* by the number of the path */
};

void doors_init(struct doors *doors, struct log *log,
		struct incidents *incidents,
		const struct sockaddr_storage *home);
/* LP said that pipes of @path may come from another address. @now: by the loop. */
void doors_open(struct doors *doors, unsigned int path, int64_t now);
/*
 * May a pipe of @path come from @peer? It does then, and a new address is logged, as
 * @session's, unless there were many.
 */
bool doors_admit(struct doors *doors, unsigned int path,
		 const struct sockaddr_storage *peer, int64_t now,
		 unsigned int session);

#endif
