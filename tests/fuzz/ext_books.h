/* SPDX-License-Identifier: MIT */
/*
 * The books of a session of the extension: what is granted, kept, held early, queued, and
 * waits in flows of datagrams.
 */
#ifndef TM3_FUZZ_EXT_BOOKS_H
#define TM3_FUZZ_EXT_BOOKS_H

struct session;

/*
 * Are they what a walk over all channels, pipes and connections gives? Of a session that is
 * stopping its connections alone are counted.
 */
void ext_books_check(const struct session *s);

#endif
