/* SPDX-License-Identifier: MIT */
/*
 * Both ends of a session of the extension, without sockets and clock: the pure
 * parts of mux/extension and the reorder queue of mux/conn, and between them
 * pipes that die. A few pipes, a few ids; each step is one thing that may
 * happen, drawn at random:
 *
 *	LP or RP opens, sends, half-closes, resets, grants credit
 *	one message is parsed at one end of a pipe, in order or not
 *	one end closes a pipe, or notices that the other has
 *	LP dials a pipe again
 *	an end sends again what was kept for a dead pipe, or a copy, or an ACK
 *	an end cuts data into messages and sends these from the front or from the end
 *
 * Messages that were on their way to an end that closed are lost; those that
 * are on their way to the other end are still parsed there, until it notices or
 * hears of the next incarnation. Now and then both ends are let come to rest,
 * and then nothing may be missing.
 *
 * Each message of an id and direction has a serial that only the model knows:
 * they must be due one by one. `wrong` turns on one rule that is known to break
 * (the first six are the first draft's), and then the model has to find it.
 *
 * Half of the sessions have pipes that keep no order, as SCTP's: there a message has its
 * count with it, of which an end sees 32 bits, and may overtake others unless it is
 * sent in order.
 */
#ifndef TM3_TEST_ENDS_H
#define TM3_TEST_ENDS_H

#include <stdbool.h>
#include <stdint.h>

enum wrong_rule {
	RIGHT,
	NUMBERS_FROM_0,		/* for each use of an id */
	SUCCESSOR,		/* an OPEN of a live id begins a new use */
	COUNT_FOR_INDEX,	/* received = how many were parsed */
	WINDOW_PER_USE,
	WINDOW_ONCE,		/* not kept, so not sent again */
	ACK_OF_ACK,		/* ACK counts */
	ACK_ONCE,		/* not sent anew when a pipe has ended */
	EARLY_UNTIL_RESET,	/* early bytes of a use count until then */
	EARLY_OVER_WINDOW,	/* SYNACK's offset bounds early bytes, too */
	ANY_INCARNATION,	/* an ACK is not asked which one it is about */
	KERNELS_ACK,		/* what reached the other end's buffer is let go */
	COUNT_OF_BEFORE,	/* what is sent again says its count on the former pipe */
	TWIN_OF_A_DEAD_PIPE,	/* a message kept for two pipes goes again with neither */
	RESET_OVER_CHUNK,	/* what was cut and not sent is dropped by a reset */
	BEHIND_NO_WELCOME,	/* RP sends out of order before it knows that WELCOME came */
	WRONG_RULES,
};

struct ends_result {
	uint64_t steps;
	uint64_t deaths;	/* of pipes */
	uint64_t again;		/* messages sent again */
	uint64_t copies;
	uint64_t spared;	/* of a dead pipe, but kept for another or there */
	uint64_t from_end;	/* sent from the end of a chunk */
	uint64_t uses;
	uint64_t delivered;	/* messages due */
	uint64_t rests;		/* times that both ends were at rest */
	const char *found;	/* what went wrong, or NULL */
};

/* Runs @steps random steps, or up to the first finding. */
struct ends_result ends_run(uint64_t seed, uint64_t steps,
			    enum wrong_rule wrong);

#endif
