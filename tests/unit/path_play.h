/* SPDX-License-Identifier: MIT */
/*
 * Objects over several paths in virtual time: the engine's own decision, over paths that are
 * constant and lose nothing. A path sends one message after another at its rate; each arrives the
 * delay later, and is acknowledged as much later again. What its windows allow is set at the
 * beginning and stays.
 */
#ifndef TM3_TEST_PATH_PLAY_H
#define TM3_TEST_PATH_PLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "mux/conn/conn.h"
#include "mux/path/paths.h"
#include "mux/pipe/pipe.h"
#include "mux/sched/next.h"

enum {
	PLAY_PATHS = 3,
	PLAY_CONNS = 16,
	PLAY_FLIGHTS = 1 << 13,	/* messages of a path that are not acknowledged */
	PLAY_SENT = 1 << 13,	/* messages that are looked at for twins, by all paths */
	PLAY_MESSAGE = 1460,	/* bytes */
};

struct play_mile {
	double rate;		/* bytes a second */
	double delay;		/* one way, s */
};

/* A path as it is played: one pipe. */
struct play_lane {
	struct play_mile mile;
	struct pipe pipe;
	struct play_flight {
		int64_t acked_at;
		size_t bytes;
	} flight[PLAY_FLIGHTS];
	unsigned int first, n;
	int64_t free_at;	/* it has sent what it was given, */
	int64_t arrived_at;	/* and the last byte of that arrived; 0: it had none */
	uint64_t bytes;
};

struct play {
	struct sched s;
	struct paths paths;
	struct settings settings;
	struct play_lane lane[PLAY_PATHS];
	unsigned int nlanes;
	struct conn conn[PLAY_CONNS];
	struct outlook outlook[PLAY_CONNS];	/* of each */
	uint64_t size[PLAY_CONNS];	/* of what each has to send */
	int64_t due[PLAY_CONNS];	/* it comes then; 0: it is there, or there is none */
	int64_t done[PLAY_CONNS];	/* its last byte arrived, by any path */
	bool one_by_one;	/* a path takes a message when the one before it has left */
	int64_t now;
	struct play_sent {
		size_t bytes;
		unsigned int conn;
		unsigned int lanes;	/* bits: those that carry it */
		int64_t forecast;	/* when it arrives, as the first one was forecast, */
		int64_t acked_at;
		int64_t arrived_at;	/* and when the first of them does */
	} sent[PLAY_SENT];
	unsigned int nsent;
	uint64_t again;		/* bytes that a second path carried as well */
};

/* RATE DELAY of each, as words. */
void play_read_miles(struct play_mile *miles, unsigned int n, char **words);

/* With windows that fill the paths. */
void play_init(struct play *play, const struct path_policy *policy,
	       const struct play_mile *miles, unsigned int n);

/* Connections are chosen by @policy, in place of drr. */
void play_conns(struct play *play, const struct conn_policy *policy);

/* It has so many bytes to send. @known: their number is, and no more come behind them. */
void play_object(struct play *play, unsigned int conn, uint64_t bytes,
		 bool known);

/* The same in so many seconds, of a known size. */
void play_later(struct play *play, unsigned int conn, uint64_t bytes,
		double seconds);

struct next play_next(struct play *play);
/*
 * What was decided is done: @next.bytes, or all that its connection has left; or a message that
 * another path carries goes as well.
 */
void play_send(struct play *play, const struct next *next);

/* A path takes no more. */
void play_shut(struct play *play, unsigned int path);

/* One-way delays of both paths deviate by so much. */
void play_deviate(struct play *play, double seconds);

/* From @wanted on, by at most @most. */
void assert_near(double value, double wanted, double most);

/* Until all has arrived. Seconds. */
double play_run(struct play *play);

#endif
