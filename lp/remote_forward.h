/* SPDX-License-Identifier: MIT */
/*
 * All of --remote-forward at work: rp is asked to listen, and what it accepts is connected
 * from here. Where to is this end's to say: rp names one of the rules, and nothing else. A
 * name is looked up for each connection, and its addresses are raced (race.h).
 *
 * Where rp does not listen it is said once, and rp is asked again every REMOTE_AGAIN_S: the
 * port may become free, or permitted.
 */
#ifndef TM3_REMOTE_FORWARD_H
#define TM3_REMOTE_FORWARD_H

#include <stdint.h>
#include <stdio.h>

struct conn;
struct proxy;
struct remote_forwards;

enum { REMOTE_AGAIN_S = 10, REMOTE_CONNECT_S = 10 };

/* NULL: no memory. */
struct remote_forwards *remote_forwards_new(struct proxy *p);
void remote_forwards_free(struct remote_forwards *r);

/* The proxy's session has begun; it is about to be freed. */
void remote_forwards_begin(struct remote_forwards *r);
void remote_forwards_end(struct remote_forwards *r);

/* As the session's role has them. */
void remote_forwards_listening(struct remote_forwards *r, uint16_t listener,
			       uint8_t result, uint16_t port);
void remote_forwards_accepted(struct remote_forwards *r, struct conn *c);
/* The socket of @c, which rp opened, was closed; or the wait for it given up. */
void remote_forwards_closed(struct conn *c);

void remote_forwards_print(const struct remote_forwards *r, FILE *out);

#endif
