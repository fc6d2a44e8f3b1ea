/* SPDX-License-Identifier: MIT */
/*
 * For how long a slow reader delayed the others: an account of time. It grows
 * while pipes pause on the reader's account, less the time that a reader at
 * STALL_RATE would have needed for the bytes that it took meanwhile; and it
 * shrinks by one part in STALL_SHARE of the time in which they do not.
 *
 * So who reads fast can make short pauses without end, and who reads slowly
 * comes to STALL_MS sooner or later.
 */
#ifndef TM3_STALL_H
#define TM3_STALL_H

#include <stdbool.h>
#include <stdint.h>

struct stall {
	int64_t spent;		/* ns, as of */
	int64_t at;
	uint64_t taken;		/* bytes taken by then */
};

/* Pipes pause from now on. @taken: bytes that the reader took so far, in all. */
void stall_begin(struct stall *s, int64_t now, uint64_t taken);

/* They did so since stall_begin(), or since this was called before. */
void stall_charge(struct stall *s, int64_t now, uint64_t taken);

/* They did, but that delayed nobody. */
void stall_excuse(struct stall *s, int64_t now, uint64_t taken);

/* The reader has delayed the others for longer than it may. */
bool stall_is_spent(const struct stall *s);

#endif
