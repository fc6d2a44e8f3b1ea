/* SPDX-License-Identifier: MIT */
/* One direction of linkem's link, played in virtual time from 0 on. */
#ifndef TM3_TEST_LINKEM_BED_H
#define TM3_TEST_LINKEM_BED_H

#include <stdbool.h>
#include <stdint.h>

#include "topologies/linkem/clock.h"
#include "topologies/linkem/frame.h"
#include "topologies/linkem/link.h"

enum { MTU = 1500, FULL = MTU + FRAME_HEADER, OUT_MAX = 1 << 17 };

struct out {
	uint64_t index;
	int64_t at, entered, passed;
	uint32_t len;
	bool copy, held;
};

struct bed {
	struct pool pool;
	struct link link;
	int64_t now;
	struct out out[OUT_MAX];
	int n;
	bool lost[OUT_MAX];		/* by the loss model */
	int fell_open;			/* how often a gate was said to */
};

/* A link with these parameters; with a trace, of rate or delay, of these lines. */
struct bed *bed_new(const char *words, uint64_t seed);
struct bed *bed_new_traced(const char *lines, const char *words);
struct bed *bed_new_delayed(const char *lines, const char *words);

/* Asserts that it gave all packets back. */
void bed_free(struct bed *bed);

/* Frames that come at @at; until then the link is played. */
void bed_ip(struct bed *bed, int64_t at, uint32_t frame_len);
void bed_arp(struct bed *bed, int64_t at);
void bed_dscp(struct bed *bed, int64_t at, uint32_t frame_len, int dscp);

/* As the loop does it: at each moment at which something happens. */
void bed_play_until(struct bed *bed, int64_t until);
void bed_play_out(struct bed *bed);

/* Takes what is due at @now, without looking in between. */
void bed_collect(struct bed *bed, int64_t now);

/*
 * A new one after 3,000 full frames, one a millisecond, played as the loop does it, or looked
 * at with each hundredth frame alone; and do the same packets leave two of them at the same times?
 */
struct bed *bed_played_often(const char *words, uint64_t seed);
struct bed *bed_played_seldom(const char *words, uint64_t seed);
void bed_assert_alike(const struct bed *a, const struct bed *b);

/* As the control socket does it. */
void bed_configure(struct bed *bed, const char *words);

/* Every packet that came is somewhere. */
void bed_assert_conserved(const struct bed *bed);

/* How many came out behind one with a higher number. */
int bed_out_of_order(const struct bed *bed);

#endif
