/* SPDX-License-Identifier: MIT */
#include "budget.h"

#include <time.h>

#include "loop.h"

/* After so many rounds nobody owes anything: what is multiplied stays small. */
enum { FORGIVEN = 1 << 20 };

/* Not the time of day: whoever is interrupted by another process did not take that time. */
static int64_t thread_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static bool is_alone(const struct budget *b)
{
	return b->all->n < 2;
}

static void count(struct budgets *all, uint64_t round)
{
	if (all->round != round) {
		all->were_busy = all->round + 1 == round ? all->busy : 0;
		all->busy = 0;
		all->round = round;
	}
	all->busy++;
}

static int64_t part(const struct budgets *all)
{
	unsigned int n = all->busy > all->were_busy ? all->busy : all->were_busy;
	int64_t us = BUDGET_ROUND_US / n;

	return (us > BUDGET_LEAST_US ? us : BUDGET_LEAST_US) * NS_PER_US;
}

void budgets_init(struct budgets *all, const struct loop *loop)
{
	*all = (struct budgets){ .loop = loop };
}

void budget_init(struct budget *b, struct budgets *all)
{
	*b = (struct budget){ .all = all, .round = loop_round(all->loop) - 1 };
	all->n++;
}

void budget_fini(struct budget *b)
{
	if (b->all)
		b->all->n--;
	b->all = NULL;
}

/* What the rounds since have brought; nothing is saved up. */
static void refill(struct budget *b)
{
	uint64_t round = loop_round(b->all->loop), rounds = round - b->round;
	int64_t most;

	if (!rounds)
		return;
	count(b->all, round);
	most = part(b->all);
	b->round = round;
	b->left += (int64_t)(rounds < FORGIVEN ? rounds : FORGIVEN) * most;
	if (b->left > most)
		b->left = most;
}

bool budget_begin(struct budget *b)
{
	if (is_alone(b))
		return true;
	refill(b);
	if (b->left <= 0)
		return false;
	b->since = thread_clock();
	return true;
}

bool budget_is_watched(const struct budget *b)
{
	return b->since != 0;
}

int64_t budget_used(struct budget *b)
{
	int64_t now, used;

	if (!budget_is_watched(b))
		return 0;
	now = thread_clock();
	used = now - b->since;
	b->since = now;
	b->left -= used;
	return used;
}

bool budget_goes_on(const struct budget *b)
{
	return !budget_is_watched(b) || b->left > 0;
}

void budget_end(struct budget *b)
{
	budget_used(b);
	b->since = 0;
}
