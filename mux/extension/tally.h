/* SPDX-License-Identifier: MIT */
/*
 * Which messages of one direction of one incarnation of a pipe were parsed: the
 * receiver's side of what ACK tells. Messages that count are 1, 2, ... On a
 * stream a message's count is its place; over SCTP, where they come in any
 * order, the PPID tells its low 32 bits.
 */
#ifndef TM3_TALLY_H
#define TM3_TALLY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Parsed messages that one gap may leave behind it. Linux drops what is 4096 chunks or more
 * ahead of what is missing on an association, and a message is one chunk at least.
 */
enum { TALLY_AHEAD = 4096 };

/* A pipe over SCTP goes before a count needs a 33rd bit, with time to find out. */
#define TALLY_MOST (UINT32_MAX - (UINT32_C(1) << 24))

struct tally {
	uint64_t received;	/* all up to this one were parsed */
	uint64_t ahead[TALLY_AHEAD / 64];	/* bits: parsed behind a gap */
};

enum tally_verdict {
	TALLY_NEW,
	TALLY_SEEN,		/* this count came before */
	TALLY_TOO_FAR,		/* it cannot be remembered */
	TALLY_UNLIKE,		/* it counts and says that it does not, or so */
};

void tally_init(struct tally *tally);

enum tally_verdict tally_put(struct tally *tally, uint64_t count);

/* The count whose low 32 bits are @low, nearest to what is expected. */
uint64_t tally_from_low(const struct tally *tally, uint32_t low);

/* On a stream: the next message that counts. */
void tally_next(struct tally *tally);

/*
 * Over SCTP: any message, with its PPID. Whether it @counts is told by its type, and both
 * must agree. All but TALLY_NEW is an error of the pipe's: the kernel delivers once.
 */
enum tally_verdict tally_told(struct tally *tally, bool counts, uint32_t ppid);

/* What is wrong with a message, for the log. */
const char *tally_text(enum tally_verdict verdict);

#endif
