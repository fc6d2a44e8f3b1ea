/* SPDX-License-Identifier: MIT */
/*
 * A propagation delay that changes by the clock: a file whose lines hold for
 * how many milliseconds, and a delay of as many. After the last line the first
 * one comes again.
 */
#ifndef LINKEM_DELAYS_H
#define LINKEM_DELAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct delays_step {
	int64_t end;		/* since the period began, ns */
	int64_t delay;		/* until then, ns */
};

struct delays {
	struct delays_step *step;	/* owned */
	size_t n;
	int64_t base;		/* when it began */
	bool started;
};

/* 0, or -errno with one line in @why. */
int delays_load(struct delays *d, const char *path, char *why, size_t why_len);
int delays_copy(struct delays *to, const struct delays *from);
void delays_fini(struct delays *d);

/* The period begins at @now. */
void delays_start(struct delays *d, int64_t now);

/* The delay of what is sent at @at, which is not before it began. */
int64_t delays_at(const struct delays *d, int64_t at);

#endif
