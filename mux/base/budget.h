/* SPDX-License-Identifier: MIT */
/*
 * What somebody may use of the loop's thread in a round, so that a round is short whatever
 * is asked for. BUDGET_ROUND_US of the processor's time are for all who have something to do,
 * in equal parts of BUDGET_LEAST_US at least. Who took more, because what it began could
 * not be cut short, has so much less in the rounds that follow. While there is one budget
 * alone it has no end: nobody would wait for who uses it.
 */
#ifndef TM3_BUDGET_H
#define TM3_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { BUDGET_ROUND_US = 300, BUDGET_LEAST_US = 50 };

struct loop;

struct budgets {		/* of one loop */
	const struct loop *loop;
	unsigned int n;		/* that there are, */
	uint64_t round;
	unsigned int busy;	/* that were asked for in this round, */
	unsigned int were_busy;	/* and in the one before */
};

struct budget {
	struct budgets *all;	/* NULL: it is not in use */
	uint64_t round;		/* of the loop's, as of which is */
	int64_t left;		/* ns; less than nothing is owed */
	int64_t since;		/* it is being used: from then on, by the thread's clock */
};

void budgets_init(struct budgets *all, const struct loop *loop);

/* It counts as one of @all until budget_fini(), which may be called twice. */
void budget_init(struct budget *b, struct budgets *all);
void budget_fini(struct budget *b);

/*
 * Is anything left of it in this round? Then it is used from now on, until budget_end(); its
 * user asks now and then whether it may go on.
 */
bool budget_begin(struct budget *b);
bool budget_goes_on(const struct budget *b);
void budget_end(struct budget *b);
/* What was used, in ns, since it was asked last; 0: nobody looks, since it is alone. */
int64_t budget_used(struct budget *b);
/* Does anybody? */
bool budget_is_watched(const struct budget *b);

#endif
