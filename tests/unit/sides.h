/* SPDX-License-Identifier: MIT */
/* Flows of datagrams between two sessions, as who owns their two ends sees them. */
#ifndef TM3_TEST_SIDES_H
#define TM3_TEST_SIDES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "ext_pair.h"
#include "mux/session/flow.h"

enum { SIDES = 100 };

struct side {
	struct flow *flow;	/* NULL: there is none, or it has ended */
	unsigned int came, ended;
	unsigned int told, mtu;		/* LP: how often of an MTU, and the last one */
	size_t len;
	uint8_t last[WIRE_PAYLOAD_MAX];
	struct destination at;
};

extern struct side lp_side[SIDES], rp_side[SIDES];
extern unsigned int sides_asked;	/* flows that RP was asked for */
extern bool sides_echo;			/* RP sends back what comes */
extern bool sides_wait;			/* RP does not answer an OPEN by itself */

struct side_put {
	int fd;			/* -1: RP puts nothing */
	struct sockaddr_storage to;
	unsigned int unsent;
};

extern struct side_put side_put;
extern const struct flow_ops side_ops;

int sides_set_up(void **state);
/* Also where the clock was left standing by a test that failed. */
int sides_tear_down(void **state);
/* Of sides_set_up(), for who made the pair otherwise. */
void sides_prepare(struct pair *pair);

struct destination sides_server(uint16_t port);
void sides_begin(struct pair *pair, int i, const struct destination *to);
/* Waits until there are @n, and no more. */
void sides_expect(struct pair *pair, const unsigned int *count, unsigned int n);

#endif
