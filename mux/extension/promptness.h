/* SPDX-License-Identifier: MIT */
/*
 * Promptness: does the other end acknowledge a message that comes alone at once? A receiver
 * may delay the acknowledgement of less than two segments, for 40 ms at most where it is
 * Linux, hoping for something to send along. Ours does not (pipe.h, prompt), where it reads in
 * time; of others nothing is known. So single messages are watched, a sample of them, and what
 * is overdue is copied without an allowance for such delays (tail.h) as long as
 * acknowledgements come in time.
 *
 * Of a thousand one may be late, on average. An acknowledgement that is lost looks as if it
 * were late, as soon as a later one stands for it, and is as likely as a message that is
 * lost; so for each message that was, two more may be late. Where nothing is lost copies that
 * nobody needed are therefore at most a thousandth of the messages, and one.
 */
#ifndef TM3_PROMPTNESS_H
#define TM3_PROMPTNESS_H

#include <stdbool.h>
#include <stdint.h>

/* So many come in time before the first is expected to. */
enum { PROMPTNESS_TRIAL = 32 };

/* Of one direction of a session. */
struct promptness {
	unsigned int trial;	/* so many have to come in time first */
	int32_t balance;	/* thousandths of an acknowledgement that may yet be late */
};

/* The message of one pipe that is watched. */
struct sample {
	uint64_t end;		/* in the pipe's stream; 0: none is */
	int64_t sent_at, due;	/* its acknowledgement is late from then on */
	uint32_t again;		/* segments that the pipe had sent again before */
	bool late;
	bool followed;		/* by a message whose acknowledgement is its as well */
};

void promptness_init(struct promptness *of);

/* May a single message be expected to be acknowledged in time? */
bool promptness_is_known(const struct promptness *of);

/* A message is sent now and watched from here on. */
void sample_begin(struct sample *s, uint64_t end, int64_t now, int64_t patience,
		  uint32_t again);

/*
 * @arrived: so much of the pipe's stream is acknowledged, with @again segments sent
 * again in all. True: it was found out how it went, and nothing is watched any more.
 */
bool sample_look(struct sample *s, struct promptness *of, uint64_t arrived,
		 uint32_t again, int64_t now);

/* When to look; INT64_MAX: nothing is watched. */
int64_t sample_next(const struct sample *s, int64_t now);

#endif
