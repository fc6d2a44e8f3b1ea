/* SPDX-License-Identifier: MIT */
/*
 * Over which paths a connection goes, by the rules of --rule and what is known of it: where it
 * wants to go, the name that was asked for or that its first bytes tell, and whose client it is.
 */
#ifndef TM3_STEERING_H
#define TM3_STEERING_H

#include <stdbool.h>

#include "../mux/session/session.h"
#include "path_rule.h"

struct log;

struct steering {
	const struct path_rules *rules;
	struct log *log;
	int diag;		/* of owner.h, or -errno */
	bool said_user, said_program;	/* that it cannot be known */
};

/* @rules may change, and are asked as they are then. Without @paths there never are any. */
void steering_open(struct steering *st, const struct path_rules *rules,
		   bool paths, struct log *log);
/* Says whose user or program this process cannot know, if a rule asks for one. */
void steering_announce(const struct steering *st);
void steering_close(struct steering *st);

/*
 * Of the client of @fd, which wants to go to @to. @name: that was asked for; NULL: it is @to's,
 * if that has one.
 */
struct bounds steering_bounds(struct steering *st, int fd,
			      const struct destination *to, const char *name);
/* The same by its first bytes, which lie unread in @fd: bits of paths. */
uint8_t steering_by_first_bytes(struct steering *st, int fd,
				const struct destination *to);

#endif
