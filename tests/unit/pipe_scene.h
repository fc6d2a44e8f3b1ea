/* SPDX-License-Identifier: MIT */
/* A pipe over loopback, whose other end is a socket of the test's. */
#ifndef TM3_TEST_PIPE_SCENE_H
#define TM3_TEST_PIPE_SCENE_H

#include "mux/pipe/pipe.h"
#include "mux/settings/settings.h"

struct pipe_scene {
	struct settings settings;
	struct pipe_shared shared;
	struct pipe *pipe;
	int peer;
};

/* For cmocka: 0, or -1 where it cannot be had, or asked for acknowledgements. */
int pipe_scene_begin(struct pipe_scene *s, const struct pipe_ops *ops);
void pipe_scene_end(struct pipe_scene *s);

/* Sends a message of one byte. */
void pipe_scene_send(struct pipe_scene *s);

#endif
