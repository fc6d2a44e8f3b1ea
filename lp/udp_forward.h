/* SPDX-License-Identifier: MIT */
/*
 * One --forward udp: at work. Each address and port that sends to its port has a flow of its
 * own to the one destination, and hears what comes back, from the address that it sent to: who
 * sends to two of this host's addresses has two. Who has been silent longest makes room where
 * there are UDP_CLIENTS_MAX; rp ends flows that are idle.
 */
#ifndef TM3_UDP_FORWARD_H
#define TM3_UDP_FORWARD_H

#include <stdio.h>

struct proxy;
struct rule;
struct udp_forward;

enum { UDP_CLIENTS_MAX = 512 };

/* @rule must outlive it. NULL on failure, which was said. */
struct udp_forward *udp_forward_new(struct proxy *p, const struct rule *rule);
void udp_forward_free(struct udp_forward *f);

void udp_forward_announce(const struct udp_forward *f);
void udp_forward_print(const struct udp_forward *f, FILE *out);

#endif
