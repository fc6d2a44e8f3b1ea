/* SPDX-License-Identifier: MIT */
/*
 * Which pipe is read next, and how much of it.
 *
 * Messages of a connection lie in many pipes, and what is read before its turn
 * has to be copied and queued. So that pipe is read first whose next message is
 * due; the header of the message that was read in part tells what is next.
 *
 * A pipe whose next message is early waits, its bytes in the kernel: on it the
 * numbers of a connection rise, so it cannot bring the one that is missing. It
 * waits as long as that one may be among the bytes that came and were not
 * read. Else its connection has a gap: the number is in the network, or never
 * comes. Then what is early is read like what is due, until the number moves.
 *
 * A gap is noted when no pipe that can be read has anything but early messages
 * next; or, where others always have something that is due, when as much was
 * read as was unread elsewhere while the pipe waited. So a pipe never waits for
 * another pipe, only for a number of bytes to be read: see docs/decisions/0011.
 *
 * No sockets, no clock. What a connection expects and what is unread is asked
 * from who owns the reader.
 */
#ifndef TM3_READER_H
#define TM3_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../settings/limits.h"
#include "../wire/wire.h"

enum {
	READER_MAX = 256 * 1024 - 2 * WIRE_MESSAGE_MAX,	/* bytes a read */
	READER_LEAST = 32 * 1024,	/* for less a call is not worth it */
	READER_GAPS = PIPES_MAX,	/* that are remembered */
};

struct reader_ops {
	/*
	 * Which number does the connection of that message on @pipe expect? False: it
	 * would not be queued whatever its number; there may be no such connection.
	 */
	bool (*expects)(void *arg, unsigned int pipe,
			const struct wire_head *head, uint32_t *number);
	/* The bytes that came over @pipe and were not read. */
	size_t (*unread)(void *arg, unsigned int pipe);
	/* Which of @pipes, a bit for each, have any? Asked for each gap, so one call answers. */
	uint64_t (*came)(void *arg, uint64_t pipes);
};

/* A number that a connection expects, and since when it was looked for. */
struct reader_gap {
	uint16_t id;		/* 0: none */
	uint32_t number;
	uint64_t since;		/* so many bytes had been read in all */
};

struct reader_pipe {
	bool ordered;		/* numbers of a connection rise on it */
	bool bulky;		/* what it brought last was much at once */
	bool known;		/* which message is next, and */
	size_t had;		/* bytes of it that were read */
	struct wire_head head;
	struct reader_gap waits;	/* for this number to be read, */
	uint64_t until;		/* until so many bytes were; 0: not asked yet */
	size_t surveyed;	/* bytes unread at the last survey */
};

struct reader {
	const struct reader_ops *ops;
	void *arg;
	unsigned int npipes, last;
	uint64_t unread;	/* a bit for each pipe that can be read */
	uint64_t read;		/* bytes, in all */
	struct {
		uint64_t at;	/* bytes read by then, and one; 0: none yet */
		uint64_t unread;	/* of all pipes */
	} survey;
	bool all_named;		/* nothing was read since they were */
	size_t early;		/* bytes that were read in this round although early */
	bool early_turn;	/* what is due and what is early take turns */
	struct reader_pipe pipe[PIPES_MAX];
	struct reader_gap gap[READER_GAPS];	/* not among what had come */
	unsigned int next_gap;
};

void reader_init(struct reader *r, const struct reader_ops *ops, void *arg);
void reader_add(struct reader *r, unsigned int pipe, bool ordered);

/* It is gone; another one may be added with its number. */
void reader_remove(struct reader *r, unsigned int pipe);

/* @pipe can be read. */
void reader_ready(struct reader *r, unsigned int pipe);

/*
 * A round: after all pipes that can be read were named, reads until
 * reader_next() says -1 or whoever reads has had enough. What can be read is
 * named anew before the next round.
 */
void reader_begin(struct reader *r);
void reader_end(struct reader *r);

/* The pipe to read and at most how many bytes; -1: none in this round. */
int reader_next(struct reader *r, size_t *most);

/*
 * It was read: @got bytes of @most, and of the message that is next @had bytes
 * are there (@head, or NULL when that is not a header).
 */
void reader_was_read(struct reader *r, unsigned int pipe, size_t most,
		     size_t got, const struct wire_head *head, size_t had);

#endif
