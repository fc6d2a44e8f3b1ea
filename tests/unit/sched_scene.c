/* SPDX-License-Identifier: MIT */
#include "sched_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void scene_init(struct scene *scene, const struct conn_policy *conns,
		const struct pipe_policy *pipes)
{
	memset(scene, 0, sizeof(*scene));
	sched_init(&scene->s, conns, pipes, SCENE_PIPES, 1);
	for (uint16_t i = 0; i < SCENE_CONNS; i++) {
		scene->conn[i].id = (uint16_t)(i + 1);
		list_init(&scene->conn[i].turn);
		list_init(&scene->conn[i].ahead);
		scene->outlook[i] = outlook_none;
		scene->conn[i].outlook = &scene->outlook[i];
	}
	for (unsigned int i = 0; i < SCENE_PIPES; i++) {
		scene->pipe[i].index = i;
		scene->pipe[i].path = &scene->path;
		scene->all[i] = &scene->pipe[i];
	}
}

void scene_pipe(struct scene *scene, unsigned int i,
		const struct settings *settings, unsigned int rtt_ms)
{
	struct pipe *p = &scene->pipe[i];

	p->settings = settings;
	p->allowance = 4 * MSS;
	p->info.mss = MSS;
	p->info.cwnd = 10;
	p->info.rttmin_ms = p->info.rtt_ms = rtt_ms;
}

void scene_ready(struct scene *scene, unsigned int i)
{
	scene->conn[i].ready = true;
	sched_ready(&scene->s, &scene->conn[i], scene->now);
}

void scene_silent(struct scene *scene, unsigned int i)
{
	scene->conn[i].ready = false;
	sched_idle(&scene->s, &scene->conn[i], scene->now);
}

struct sched_choice scene_next(struct scene *scene, unsigned int pipe,
			       size_t room)
{
	return scene->s.conns->next(&scene->s, &scene->pipe[pipe], room,
				    scene->now);
}

unsigned int scene_send(struct scene *scene, unsigned int pipe, size_t room)
{
	struct sched_choice choice = scene_next(scene, pipe, room);
	unsigned int i;

	assert_int_equal(choice.act, SCHED_NEW);
	i = (unsigned int)(choice.conn - scene->conn);
	assert_in_range(choice.budget, 1, room);
	scene->sent[i] += choice.budget;
	scene->s.conns->sent(&scene->s, choice.conn, choice.budget);
	return i;
}
