/* SPDX-License-Identifier: MIT */
/*
 * Thin connections stay on a pipe.
 *
 * A connection that sends less than a segment a round trip (keys typed, DNS,
 * games) is repaired by what follows: only when a later segment of the same
 * pipe arrives does the other end tell TCP of the gap. On another pipe the next
 * message tells nothing, and the lost one waits for a timer. So as long as its
 * last message is not acknowledged it stays where that message is. --thin off
 * does without: see view.scatters.
 *
 * Its own bytes are counted in rounds, since what a pipe has in flight is others'
 * as well: a round lasts from one of its messages to the first one after that was
 * acknowledged. A connection is thin if it sent less than a segment in this
 * round, and in the one before; with nothing in flight it begins anew.
 *
 * No sockets, no clock.
 */
#ifndef TM3_THIN_H
#define TM3_THIN_H

#include <stddef.h>

struct conn;
struct paths;
struct pipe;

/* The pipe for @c, when the policy picked @p. */
struct pipe *thin_pipe(const struct paths *paths, const struct conn *c,
		       struct pipe *p);

/* @c is about to send @len bytes on @p. */
void thin_sent(const struct paths *paths, struct conn *c, const struct pipe *p,
	       size_t len);

#endif
