/* SPDX-License-Identifier: MIT */
#include "pipe_scene.h"

#include <string.h>
#include <unistd.h>

#include "loopback.h"
#include "mux/options/options.h"

int pipe_scene_begin(struct pipe_scene *s, const struct pipe_ops *ops)
{
	int fd[2];

	memset(s, 0, sizeof(*s));
	settings_init(&s->settings);
	s->shared.loop = loop_new();
	s->shared.settings = &s->settings;
	tcp_pair(fd);
	s->peer = fd[1];
	s->pipe = pipe_new(&s->shared, ops, NULL, conduit_plain(fd[0]));
	return s->pipe && acks_can_ask(&s->pipe->acks) ? 0 : -1;
}

void pipe_scene_end(struct pipe_scene *s)
{
	pipe_free(s->pipe);	/* it gives back what it has */
	run_pool_fini(&s->shared.pool);
	close(s->peer);
	loop_free(s->shared.loop);
}

void pipe_scene_send(struct pipe_scene *s)
{
	struct run *run = run_get(&s->shared.pool);

	wire_put_data(run->buf, 1, 0, 1);
	run->buf[WIRE_HEADER] = 'x';
	run->id = 1;
	run->messages = 1;
	run->len = WIRE_HEADER + 1;
	pipe_send(s->pipe, run);
}
