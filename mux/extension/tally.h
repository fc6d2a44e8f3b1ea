/* SPDX-License-Identifier: MIT */
/*
 * Which messages of one direction of one incarnation of a pipe were parsed: the
 * receiver's side of what ACK tells. Messages that count are 1, 2, ... On a
 * stream a message's count is its place; over SCTP, where they come in any
 * order, the PPID tells its low 32 bits.
 */
#ifndef TM3_TALLY_H
#define TM3_TALLY_H

#include <stdint.h>

/* Parsed messages that one gap may leave behind it; SCTP holds fewer. */
enum { TALLY_AHEAD = 4096 };

struct tally {
	uint64_t received;	/* all up to this one were parsed */
	uint64_t ahead[TALLY_AHEAD / 64];	/* bits: parsed behind a gap */
};

enum tally_verdict {
	TALLY_NEW,
	TALLY_SEEN,		/* this count came before */
	TALLY_TOO_FAR,		/* close the pipe: it cannot be remembered */
};

void tally_init(struct tally *tally);

enum tally_verdict tally_put(struct tally *tally, uint64_t count);

/* The count whose low 32 bits are @low, nearest to what is expected. */
uint64_t tally_from_low(const struct tally *tally, uint32_t low);

#endif
