/* SPDX-License-Identifier: MIT */
/*
 * The whole: two ends, two directions, and the loop that moves frames between
 * them at the right time. Direction 0 is from a to b: it enters at end 0 and
 * leaves at end 1; direction 1 is the other way round.
 *
 * The loop sleeps in ppoll() until the next packet is due or a frame or a
 * command comes. One thread, so nothing is ever half done.
 */
#ifndef LINKEM_EMULATOR_H
#define LINKEM_EMULATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "link.h"
#include "options.h"
#include "packet.h"
#include "pcap.h"
#include "tap.h"

struct emulator {
	struct tap tap[2];
	struct link link[2];
	struct pcap pcap[2];
	struct pool pool;
	uint64_t oversize[2];		/* longer than the MTU: by end */
	FILE *samples;			/* NULL: not wanted */
	FILE *drops;
	int64_t sample_every, next_sample, next_flush;
	int64_t started;		/* of CLOCK_MONOTONIC */
	int64_t started_wall;
	uint64_t seed;
	int64_t coalesce;		/* ns */
	int64_t woke;
	int fifo;			/* priority in force, 0 = none */
	int cpu;			/* -1: any */
	bool spin;
	bool stop;
	char failed[128];		/* why it stopped by itself, or "" */
};

/* What else the loop waits for: @fd readable means @handle(@arg). */
struct emulator_watch {
	int fd;
	void (*handle)(void *arg);
	void *arg;
};

/* Until `stop`; 0, or -errno with `failed` set. */
int emulator_run(struct emulator *e, const struct emulator_watch *watch);

/* Both directions draw anew, from @seed. */
void emulator_restart(struct emulator *e, uint64_t seed);

/* Both directions as they are at this moment. */
int64_t emulator_settle(struct emulator *e);

#endif
