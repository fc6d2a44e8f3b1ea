/* SPDX-License-Identifier: MIT */
#include "rival.h"

/* So many segments it has ready at any time. */
enum { READY = 64 };

static void fill(struct rival *r)
{
	while (r->on && r->tcp.end - r->tcp.next < READY)
		tcp_write(&r->tcp, TCP_MSS);
	tcp_push(&r->tcp);
}

static void ignore(void *who, uint64_t number)
{
	(void)who;
	(void)number;
}

static void delivered(void *who, uint64_t number)
{
	struct rival *r = who;

	r->arrived += tcp_at(&r->tcp, number)->len;
}

static void told(void *who)
{
	fill(who);
}

static const struct tcp_ops ops = {
	.left = ignore, .delivered = delivered, .acked = ignore, .told = told,
};

void rivals_set(struct rivals *r, unsigned int n, enum tcp_cc cc,
		struct clock *clock, struct network *network)
{
	for (; r->n < n; r->n++)
		tcp_init(&r->one[r->n].tcp, clock, network, cc, true, &ops,
			 &r->one[r->n]);
	for (unsigned int i = 0; i < r->n; i++) {
		r->one[i].on = i < n;
		fill(&r->one[i]);
	}
}

void rivals_fini(struct rivals *r)
{
	for (unsigned int i = 0; i < r->n; i++)
		tcp_fini(&r->one[i].tcp);
}

uint64_t rivals_arrived(const struct rivals *r)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < r->n; i++)
		sum += r->one[i].arrived;
	return sum;
}
