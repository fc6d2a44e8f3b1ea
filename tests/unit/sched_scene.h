/* SPDX-License-Identifier: MIT */
/*
 * Policies without a session: a dozen connections and a few pipes whose figures
 * are set by hand, and a clock that the test moves.
 */
#ifndef TM3_TEST_SCHED_SCENE_H
#define TM3_TEST_SCHED_SCENE_H

#include "mux/conn/conn.h"
#include "mux/path/path.h"
#include "mux/pipe/pipe.h"
#include "mux/sched/sched.h"

enum {
	SCENE_CONNS = 12,
	SCENE_PIPES = 5,
	MSS = 1448,
	QUANTUM = 8192,		/* of deficit round robin */
	OVERDRAW = WIRE_PAYLOAD_MAX,
};

struct scene {
	struct sched s;
	struct conn conn[SCENE_CONNS];
	struct outlook outlook[SCENE_CONNS];	/* of each */
	struct path path;	/* that all pipes are on */
	struct pipe pipe[SCENE_PIPES];
	struct pipe *all[SCENE_PIPES];
	uint64_t sent[SCENE_CONNS];	/* bytes */
	int64_t now;
};

void scene_init(struct scene *scene, const struct conn_policy *conns,
		const struct pipe_policy *pipes);
/* It has sent nothing yet, a window of ten segments, and this round trip. */
void scene_pipe(struct scene *scene, unsigned int i,
		const struct settings *settings, unsigned int rtt_ms);
void scene_ready(struct scene *scene, unsigned int i);
void scene_silent(struct scene *scene, unsigned int i);
struct sched_choice scene_next(struct scene *scene, unsigned int pipe,
			       size_t room);

/* One turn on a pipe: who is chosen sends all that it may. Its index. */
unsigned int scene_send(struct scene *scene, unsigned int pipe, size_t room);

#endif
