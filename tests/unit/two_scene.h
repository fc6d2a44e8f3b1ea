/* SPDX-License-Identifier: MIT */
/* A scene of two paths: the first two pipes are on a near one, the others on a far one. */
#ifndef TM3_TEST_TWO_SCENE_H
#define TM3_TEST_TWO_SCENE_H

#include "mux/path/paths.h"
#include "mux/sched/next.h"
#include "mux/settings/settings.h"
#include "sched_scene.h"

enum { NEAR, FAR };
enum { NEAR_PIPES = 2, LIMIT = 20000 };	/* bytes that each path may hold */

struct two {
	struct scene scene;
	struct paths paths;
	struct settings settings;
	struct view view;
};

void two_init(struct two *w, const struct pipe_policy *policy);
/* The pipe is on its path, with nothing under way. */
void two_add(struct two *w, unsigned int pipe);
/* All pipes of a path take no more. */
void two_fill(struct two *w, unsigned int path);

#endif
