/* SPDX-License-Identifier: MIT */
#include "gathering.h"

#include "pipe.h"

void gathering_begin(struct gathering *g)
{
	list_init(&g->pipes);
	g->on = true;
}

void gathering_flush(struct gathering *g)
{
	while (!list_empty(&g->pipes))
		pipe_flush(list_first(&g->pipes, struct pipe, gathering));
}

void gathering_end(struct gathering *g)
{
	g->on = false;
	gathering_flush(g);
}
