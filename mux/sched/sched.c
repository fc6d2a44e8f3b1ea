/* SPDX-License-Identifier: MIT */
#include "sched.h"

#include <string.h>

#include "../conn/conn.h"

void sched_init(struct sched *s, const struct conn_policy *conns,
		const struct pipe_policy *pipes, unsigned int npipes,
		uint64_t seed)
{
	int i;

	s->conns = conns;
	s->pipes = pipes;
	s->npipes = npipes;
	s->ready = 0;
	s->turn = 0;
	s->random = seed;
	list_init(&s->newcomers);
	list_init(&s->round);
	for (i = 0; i < SCHED_CLASSES; i++)
		list_init(&s->young[i]);
	s->nyoung = 0;
	s->credit = s->round_trip = 0;
	if (conns->init)
		conns->init(s);
}

void sched_ready(struct sched *s, struct conn *c, int64_t now)
{
	s->ready++;
	s->conns->ready(s, c, now);
}

void sched_idle(struct sched *s, struct conn *c, int64_t now)
{
	s->ready--;
	s->conns->idle(s, c, now);
}

void sched_forget(struct sched *s, struct conn *c, int64_t now)
{
	if (c->ready)
		sched_idle(s, c, now);
	list_del(&c->turn);
	list_del(&c->ahead);
}

bool sched_carries(const struct sched *s, const struct pipe *p,
		   const struct conn *c)
{
	return !s->pipes->carries || s->pipes->carries(s, p, c);
}

const struct conn_policy *const conn_policies[] = {
	&sched_las, &sched_drr, &sched_fifo, NULL
};

const struct pipe_policy *const pipe_policies[] = {
	&sched_soonest, &sched_least, &sched_rr, &sched_random, &sched_fixed, NULL
};

const struct conn_policy *conn_policy_named(const char *name)
{
	const struct conn_policy *const *p = conn_policies;

	while (*p && strcmp((*p)->name, name))
		p++;
	return *p;
}

const struct pipe_policy *pipe_policy_named(const char *name)
{
	const struct pipe_policy *const *p = pipe_policies;

	while (*p && strcmp((*p)->name, name))
		p++;
	return *p;
}
