/* SPDX-License-Identifier: MIT */
/*
 * The paths of a session, and its pipes, each on one of them. The baseline has one
 * path, number 0.
 *
 * What the pipes of several paths share is here: where one of them lags the
 * receiver waits for it, whichever path it is on.
 */
#ifndef TM3_PATHS_H
#define TM3_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../settings/limits.h"
#include "path.h"
#include "spread.h"

struct pipe;

struct paths {
	struct path path[PATHS_MAX];	/* by number */
	unsigned int npaths;	/* the highest number that had a pipe, and 1 */
	struct pipe *pipes[PIPES_MAX];	/* of all paths, as they came */
	unsigned int npipes;
	uint32_t serials;	/* given to pipes so far */
	struct spread spread;
};

/* Pipes come and go. One that comes late is behind nobody. */
void paths_add(struct paths *paths, unsigned int number, struct pipe *p);
void paths_remove(struct paths *paths, struct pipe *p);

/* The number of the path that @p is on. */
unsigned int paths_number(const struct paths *paths, const struct pipe *p);

/* Brings the figures of all pipes up to date, @now by loop_clock(). */
void paths_look(struct paths *paths, int64_t now);

/* The limit of no path is what keeps anybody waiting: there is no data. */
void paths_unlimited(struct paths *paths, int64_t now);

/* Shall the other pipes wait for one that lags? */
bool paths_are_spread(struct paths *paths, int64_t now);

/* The least path_round_trip() of all paths; 0: none is known yet. */
int64_t paths_round_trip(const struct paths *paths);

/*
 * The round trip, queues included, of the farthest path that is not on standby, by its quickest
 * pipe: what all paths have under way came within that. 0: there is no pipe.
 */
int64_t paths_farthest(const struct paths *paths);

/* Is the path of @p nearer than that of @other, by more than chance? */
bool paths_is_nearer(const struct pipe *p, const struct pipe *other);

/*
 * Shall @path carry nothing new? Not if it is off; nor if it is a backup, while one that
 * is none has a pipe that looks alive.
 */
bool paths_stands_by(const struct paths *paths, const struct path *path);

/* Has @path a pipe that may carry something new, and of which nothing is overdue? */
bool paths_works(const struct paths *paths, const struct path *path);

/* The paths of those pipes that @is true of: bits. */
uint8_t paths_with(const struct paths *paths, bool (*is)(const struct pipe *p));

/* As path_sends(), @len bytes to @p. */
bool paths_send(struct paths *paths, struct pipe *p, size_t len, int64_t now,
		size_t *before);

/* As path_acked(). If the path begins an experiment, the others take part. */
void paths_acked(struct paths *paths, const struct pipe *p,
		 const struct ack_asked *what, int64_t at, int64_t now,
		 bool more);

#endif
