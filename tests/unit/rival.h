/* SPDX-License-Identifier: MIT */
/* Other people's downloads over the same modelled network. */
#ifndef TM3_TEST_RIVAL_H
#define TM3_TEST_RIVAL_H

#include "tcp.h"

enum { RIVALS_MAX = 4 };

struct rivals {
	unsigned int n;
	struct rival {
		struct tcp tcp;
		bool on;
		uint64_t arrived;	/* bytes */
	} one[RIVALS_MAX];
};

/* From now on there are @n of them; who goes sends no more. */
void rivals_set(struct rivals *r, unsigned int n, enum tcp_cc cc,
		struct clock *clock, struct network *network);
void rivals_fini(struct rivals *r);
uint64_t rivals_arrived(const struct rivals *r);

#endif
