/* SPDX-License-Identifier: MIT */
/* What the law (delay.c) and its experiments (delay_probe.c) share. */
#ifndef TM3_DELAY_INSIDE_H
#define TM3_DELAY_INSIDE_H

#include "aggregate_inside.h"

/*
 * Where no stamps come none is waited for; so long is the shortest pause, and who suspects
 * others asks again after it.
 */
#define SOON (0.5 * NS_PER_SEC)

/* Twice may be chance. */
enum { THRICE = 3 };

/* So much queue is wished for, ns; and the round trip with it. */
double delay_slack(const struct aggregate *a);
double delay_wish(const struct aggregate *a);

void delay_begin_round(struct aggregate *a, int64_t now);
void delay_bind(struct aggregate *a, double bytes, int64_t now);

/* The queue is others': no limit for a while. */
void delay_yield(struct aggregate *a, int64_t now);

/* Nobody else is there any more. */
void delay_alone_again(struct aggregate *a, double bytes, int64_t now);

/* A round has ended. True: an experiment begins. */
bool delay_probe_begins(struct aggregate *a, const struct aggregate_round *r,
			int64_t now);

/* The round of an experiment has. */
void delay_probe_ends(struct aggregate *a, const struct aggregate_round *r,
		      int64_t now);

#endif
