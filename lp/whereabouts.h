/* SPDX-License-Identifier: MIT */
/*
 * Where RP is: the addresses of the name that LP was given, as they are now, or the
 * one address that it was given instead.
 */
#ifndef TM3_WHEREABOUTS_H
#define TM3_WHEREABOUTS_H

#include <stdbool.h>

#include "../mux/base/resolver.h"

struct whereabouts {
	/* Its own: what looks up names for applications may be busy. */
	struct resolver *resolver;
	struct lookup *lookup;	/* NULL: none is under way */
	const char *host;
	void (*found)(struct whereabouts *w, const struct answer *answer);
};

/* @host stays the caller's. 0 or -ENOMEM. */
int whereabouts_init(struct whereabouts *w, struct loop *loop,
		     const char *host,
		     void (*found)(struct whereabouts *w,
				   const struct answer *answer));
void whereabouts_fini(struct whereabouts *w);

/*
 * Calls found(), at once where nothing has to be looked up. Asked while a
 * lookup is under way it adds nothing. 0 or -errno.
 */
int whereabouts_ask(struct whereabouts *w);
/* found() is not called for what was asked before. */
void whereabouts_forget(struct whereabouts *w);

/* Which of the addresses is @addr; as many as there are: none. */
unsigned int whereabouts_find(const struct answer *at,
			      const struct sockaddr_storage *addr);
/* Those between move up by one. */
void whereabouts_move(struct answer *at, unsigned int from, unsigned int to);

#endif
