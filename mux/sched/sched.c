/* SPDX-License-Identifier: MIT */
#include "sched.h"

#include <string.h>

#include "../conn/conn.h"
#include "../pipe/pipe.h"

void sched_init(struct sched *s, const struct conn_policy *conns,
		const struct pipe_policy *pipes, unsigned int npipes,
		uint64_t seed)
{
	int i;

	s->conns = conns;
	s->pipes = pipes;
	s->path = (struct path_choice){ .policy = path_policies[0] };
	s->npipes = npipes;
	s->ready = 0;
	s->again = false;
	s->turn = 0;
	s->random = seed;
	list_init(&s->newcomers);
	list_init(&s->round);
	for (i = 0; i < SCHED_CLASSES; i++) {
		list_init(&s->young[i]);
		s->credit[i] = 0;
	}
	s->nyoung = 0;
	s->round_trip = 0;
	s->ordered = s->looked = false;
	if (conns->init)
		conns->init(s);
}

void sched_set_paths(struct sched *s, const struct path_policy *policy,
		     unsigned int number, double share)
{
	s->path = (struct path_choice){
		.policy = policy, .number = number, .share = share,
	};
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

void sched_sent(struct sched *s, struct conn *c, const struct pipe *p,
		size_t len, size_t bytes)
{
	s->conns->sent(s, c, len);
	if (s->conns->gave && s->path.paths)
		s->conns->gave(s, c, p->path, bytes);
	path_choice_sent(&s->path, p, c, bytes);
}

uint64_t path_ahead(const struct path_choice *choice, const struct conn *c)
{
	const struct sched *s = container_of(choice, const struct sched, path);
	uint64_t left = conn_left(c);

	if (left == UINT64_MAX)
		return UINT64_MAX;
	if (s->conns->ahead)
		return s->conns->ahead(s, c);
	return s->ready && left > UINT64_MAX / s->ready ? UINT64_MAX :
							  left * s->ready;
}

bool sched_carries(const struct sched *s, const struct pipe *p,
		   const struct conn *c)
{
	/* Who stays on its pipe would wait for ever where that is on another path. */
	if (s->pipes->carries)
		return s->pipes->carries(s, p, c);
	return path_choice_takes(&s->path, p, c);
}

void sched_line_up(struct sched *s, struct conn *c, int64_t now)
{
	(void)now;
	list_add_tail(&s->round, &c->turn);
}

void sched_leave_line(struct sched *s, struct conn *c, int64_t now)
{
	(void)now;
	(void)s;
	list_del(&c->turn);
}

struct conn *sched_first_for(struct sched *s, const struct pipe *p)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->round) {
		struct conn *c = list_entry(pos, struct conn, turn);

		if (sched_carries(s, p, c))
			return c;
	}
	return NULL;
}

const struct conn_policy *const conn_policies[] = {
	&sched_las, &sched_drr, &sched_fifo, &sched_turns, &sched_srpt, NULL
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
