/* SPDX-License-Identifier: MIT */
#include "two_scene.h"

#include <string.h>

void two_add(struct two *w, unsigned int pipe)
{
	unsigned int path = pipe < NEAR_PIPES ? NEAR : FAR;

	scene_pipe(&w->scene, pipe, &w->settings, path == NEAR ? 20 : 200);
	paths_add(&w->paths, path, &w->scene.pipe[pipe]);
}

void two_init(struct two *w, const struct pipe_policy *policy)
{
	memset(w, 0, sizeof(*w));
	w->settings.late = true;
	scene_init(&w->scene, &sched_drr, policy);
	w->scene.now = NS_PER_SEC;
	for (unsigned int i = 0; i < SCENE_PIPES; i++)
		two_add(w, i);
	for (unsigned int i = 0; i < w->paths.npaths; i++) {
		struct aggregate *a = &w->paths.path[i].aggregate;

		aggregate_init(a, AGGREGATE_DSWA, 2, w->scene.now);
		a->limit = LIMIT;
	}
	w->view = (struct view){
		.sched = &w->scene.s, .paths = &w->paths,
		.now = w->scene.now,
	};
}

void two_fill(struct two *w, unsigned int path)
{
	struct path *p = &w->paths.path[path];

	for (unsigned int i = 0; i < p->npipes; i++)
		p->pipes[i]->info.unsent = p->pipes[i]->allowance;
}
