/* SPDX-License-Identifier: MIT */
/*
 * Which packets are lost, by their index. Written as
 *
 *   none
 *   P | bernoulli:P            each with probability P
 *   ge:P,R,BAD[,GOOD]          Gilbert-Elliott: P = good to bad, R = bad to
 *                              good, a packet is lost with probability BAD in
 *                              the bad state (GOOD in the good one, default 0)
 *   every:N[,FIRST]            packets FIRST, FIRST + N, ...; FIRST is N - 1
 *   list:I,J-K,...             these, counted from 0
 *   list:@FILE                 these, numbers or ranges one a line
 *
 * Gilbert-Elliott starts good; a packet is judged in the state it meets, then
 * the state changes. So a mean burst is 1/R packets long where BAD is 1, and
 * (P * BAD + R * GOOD) / (P + R) of all are lost in the long run.
 */
#ifndef LINKEM_LOSS_H
#define LINKEM_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rng.h"

enum loss_model {
	LOSS_NONE,
	LOSS_BERNOULLI,
	LOSS_GILBERT_ELLIOTT,
	LOSS_PERIODIC,
	LOSS_LIST,
};

struct loss_range {
	uint64_t first, last;
};

struct loss {
	enum loss_model model;
	double p;			/* Bernoulli; good to bad */
	double r, bad, good;
	bool is_bad;			/* the state now */
	uint64_t every, first;
	struct loss_range *range;	/* sorted, apart; owned */
	size_t ranges;
};

/* 0, or -errno with one line in @why; on failure @loss is untouched. */
int loss_parse(struct loss *loss, const char *text, char *why, size_t why_len);
int loss_copy(struct loss *to, const struct loss *from);
void loss_fini(struct loss *loss);

/* Whether packet @index is lost; to be asked once for each, in order. */
bool loss_take(struct loss *loss, const struct rng *rng, uint64_t index);

/* As it would be parsed; a list longer than some ranges is told by its size. */
void loss_print(const struct loss *loss, FILE *out);

#endif
