/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <stdlib.h>

struct run *run_get(struct run_pool *pool)
{
	struct run *run = pool->spare;

	if (run) {
		pool->spare = run->next;
		pool->count--;
	} else {
		run = malloc(sizeof(*run) + RUN_SIZE);
		if (!run)
			return NULL;
		run->size = RUN_SIZE;
	}
	run->next = NULL;
	run->id = 0;
	run->first = run->messages = 0;
	run->uncounted = run->count = 0;
	run->heard = run->kept = false;
	run->len = run->sent = 0;
	return run;
}

void run_put(struct run_pool *pool, struct run *run)
{
	if (run->size < RUN_SIZE || pool->count >= RUN_SPARE) {
		free(run);
		return;
	}
	run->next = pool->spare;
	pool->spare = run;
	pool->count++;
}

void run_pool_fini(struct run_pool *pool)
{
	while (pool->spare) {
		struct run *run = pool->spare;

		pool->spare = run->next;
		free(run);
	}
	pool->count = 0;
}

struct run *run_trim(struct run *run)
{
	struct run *less = realloc(run, sizeof(*run) + run->len);

	if (!less)
		return run;
	less->size = less->len;
	return less;
}
