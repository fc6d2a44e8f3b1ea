/* SPDX-License-Identifier: MIT */
/*
 * Names that datagrams go to, on their way to addresses. As with connections
 * (call.h) a session may have CALLS_LOOKING of them looked up at a time, the others
 * wait for their turn; and one that was given up meanwhile counts until it is answered. They
 * share their peer's threads with those of connections.
 */
#ifndef TM3_RP_FINDING_H
#define TM3_RP_FINDING_H

#include "../mux/base/list.h"
#include "../mux/base/resolver.h"

struct conn;
struct connector;
struct finding;

struct findings {		/* of one session */
	struct connector *connector;
	struct list unasked, asked;
	unsigned int looking;
};

void findings_init(struct findings *all, struct connector *connector);
/* Nobody is told of what is still under way. */
void findings_fini(struct findings *all);

/*
 * @flow has something for @name. @found is told once, never from within this, unless
 * finding_give_up() comes first. NULL for want of memory.
 */
struct finding *finding_begin(struct findings *all, const struct conn *flow,
			      const char *name, answered_fn found, void *owner);
void finding_give_up(struct finding *f);

#endif
