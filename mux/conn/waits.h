/* SPDX-License-Identifier: MIT */
/*
 * How long messages of a connection waited for those before them, and how many at a time: for its
 * record, where there is to be one (conn_owner.records). Made with the first that waited, which for
 * most connections never comes; all others waited for nothing.
 */
#ifndef TM3_WAITS_H
#define TM3_WAITS_H

#include <stddef.h>
#include <stdint.h>

#include "../base/hist.h"

struct reorder;
struct reorder_early;

struct waits {
	struct hist delays;
	uint32_t most_messages;	/* that waited at a time, */
	size_t most_payload;	/* and bytes of theirs */
};

/*
 * @early was just taken from @q, and had waited for @us. *@w may be NULL, and stays so without
 * memory.
 */
void waits_taken(struct waits **w, const struct reorder *q,
		 const struct reorder_early *early, int64_t us);
/* What is early in @q will not be taken. */
void waits_dropped(struct waits **w, const struct reorder *q);

#endif
