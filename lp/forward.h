/* SPDX-License-Identifier: MIT */
/*
 * One --forward at work: what connects to its port is relayed to one
 * destination, whose name is looked up anew for each connection: by rp where
 * it can be told of names, else here.
 */
#ifndef TM3_FORWARD_H
#define TM3_FORWARD_H

#include <stdio.h>

struct forward;
struct proxy;
struct rule;

/* @rule must outlive it. NULL on failure, which was said. */
struct forward *forward_new(struct proxy *p, const struct rule *rule);
void forward_free(struct forward *f);

/* Resets the connections whose name is still being looked up. */
void forward_drop_waiting(struct forward *f);

void forward_print(const struct forward *f, FILE *out);

#endif
