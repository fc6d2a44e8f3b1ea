/* SPDX-License-Identifier: MIT */
/*
 * The middle of a pipe: what one side wrote is under way here until the fuzzer's input lets it
 * go on, byte by byte if it likes, and either side can be cut off.
 */
#ifndef TM3_FUZZ_HOP_H
#define TM3_FUZZ_HOP_H

#include <stddef.h>
#include <stdint.h>

enum { HOP_TRANSIT = 1 << 15 };	/* bytes under way, from a side, at most */

struct greeting;

struct hop {
	int fd[2];		/* LP's side and RP's; -1: reset */
	size_t len[2];		/* under way from that side */
	uint8_t *bytes[2];
	struct greeting *greeting;	/* RP awaits HELLO on it */
};

/* Take what @side wrote, and hand the other one @most bytes of it. */
void hop_carry(struct hop *hop, int side, size_t most);

/* @side is reset. */
void hop_drop(struct hop *hop, int side);

/* @side learns that the other one is gone. */
void hop_pass_on(struct hop *hop, int side);

#endif
