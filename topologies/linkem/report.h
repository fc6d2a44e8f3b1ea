/* SPDX-License-Identifier: MIT */
/*
 * What a radio reports of the bytes that wait in its firmware: not their
 * number but a level, as a buffer status report of LTE does (3GPP TS 36.321,
 * 6.1.3.1). Level 0 is empty, the last one is above the cap; the edges between
 * grow by the same factor from 10 bytes up to the cap, each rounded up, which
 * gives the standard's own tables: 64 levels up to 150,000 bytes in LTE, 32 or
 * 256 in NR.
 *
 * A level is read as the most it may mean: so a grant carries all there is,
 * and what is too much is padding; and a gate rather lets too little pass.
 */
#ifndef LINKEM_REPORT_H
#define LINKEM_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { REPORT_LEVELS_MAX = 256 };

/* Written LEVELS,cap=NKB. */
struct report_spec {
	uint32_t levels;
	double cap_kb;
};

struct report {
	uint32_t levels;
	uint32_t edge[REPORT_LEVELS_MAX];	/* the most a level means */
};

int report_parse(struct report_spec *spec, const char *text, char *why,
		 size_t why_len);
void report_print(const struct report_spec *spec, FILE *out);

void report_init(struct report *r, const struct report_spec *spec);

uint32_t report_level(const struct report *r, uint64_t bytes);

/* Of the last level the cap: nobody is told more. */
uint32_t report_most(const struct report *r, uint32_t level);
bool report_is_last(const struct report *r, uint32_t level);

#endif
