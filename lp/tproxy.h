/* SPDX-License-Identifier: MIT */
/*
 * One --tproxy at work: datagrams that the kernel brings to its port, wherever they were
 * sent to. Each application's address and port has a flow of its own to each destination. What
 * comes back leaves from that destination's address (source.h), so that the application sees
 * nothing of lp.
 *
 * All ways in share the flows that a session may have. Where one more is needed, the
 * --tproxy with most of them gives up the one that was silent longest. A flow has one
 * socket at most, for answers, from the first of them until rp ends the flow for being
 * idle.
 */
#ifndef TM3_TPROXY_H
#define TM3_TPROXY_H

#include <stdio.h>
#include <sys/socket.h>

struct proxy;
struct tproxy;

/* NULL on failure, which was said. */
struct tproxy *tproxy_new(struct proxy *p, const struct sockaddr_storage *addr);
void tproxy_free(struct tproxy *t);

/* For one flow, whoever needs it. */
void tproxy_make_room(struct proxy *p);

void tproxy_announce(const struct tproxy *t);
void tproxy_print(const struct tproxy *t, FILE *out);

#endif
