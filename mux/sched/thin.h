/* SPDX-License-Identifier: MIT */
/*
 * Thin connections stay on a pipe.
 *
 * A connection that sends less than a segment a round trip (keys typed, DNS,
 * games) is repaired by what follows: only when a later segment of the same
 * pipe arrives does the other end tell TCP of the gap. On another pipe the next
 * message tells nothing, and the lost one waits for a timer. So as long as its
 * last message is not acknowledged, and all that it sent since it was last at
 * rest is less than a segment, it stays where that message is. --thin off does
 * without: see view.scatters.
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
