/* SPDX-License-Identifier: MIT */
/*
 * Connections that had ended in order when their session ended, and still
 * write out what is queued: an upload that is complete must not be lost because
 * LP left right behind it. They belong to the engine then, ORPHANS_MAX
 * bytes and ORPHAN_SECONDS of them at most; beyond that they are reset.
 */
#ifndef TM3_ORPHAN_H
#define TM3_ORPHAN_H

struct conn;
struct engine;

/* Takes @c over, or frees it when there is nothing left to write. */
void orphan(struct engine *engine, struct conn *c);
void orphans_init(struct engine *engine);
void orphans_free(struct engine *engine);

#endif
