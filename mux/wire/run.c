/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <stdlib.h>
#include <string.h>

static struct run *take(struct run_pool *pool, struct run **spare, size_t size)
{
	struct run *run = *spare;

	pool->used = true;
	if (run) {
		*spare = run->next;
		pool->bytes -= size;
	} else {
		run = malloc(sizeof(*run) + size);
		if (!run)
			return NULL;
		run->size = size;
	}
	run->next = NULL;
	run->id = 0;
	run->paths = 0;
	run->first = run->messages = 0;
	run->uncounted = run->count = 0;
	run->hints = 0;
	run->order = 0;
	run->heard = run->kept = run->ahead = false;
	run->of_conn = run->copy = run->on_all = false;
	run->len = run->sent = 0;
	return run;
}

struct run *run_get(struct run_pool *pool)
{
	return take(pool, &pool->spare, RUN_SIZE);
}

struct run *run_get_large(struct run_pool *pool)
{
	return take(pool, &pool->large, RUN_LARGE);
}

void run_put(struct run_pool *pool, struct run *run)
{
	struct run **spare = run->size == RUN_LARGE ? &pool->large :
						      &pool->spare;

	if ((run->size != RUN_LARGE && run->size != RUN_SIZE) ||
	    pool->bytes + run->size > RUN_SPARE) {
		free(run);
		return;
	}
	run->next = *spare;
	*spare = run;
	pool->bytes += run->size;
}

static void free_all(struct run *run)
{
	while (run) {
		struct run *next = run->next;

		free(run);
		run = next;
	}
}

void run_pool_fini(struct run_pool *pool)
{
	free_all(pool->spare);
	free_all(pool->large);
	*pool = (struct run_pool){ 0 };
}

bool run_pool_release(struct run_pool *pool)
{
	bool unused = !pool->used && pool->bytes;

	if (unused)
		run_pool_fini(pool);
	pool->used = false;
	return unused;
}

/*
 * To cut it down instead leaves a hole in the heap for each run that waits, and a new one of full size
 * would have to be found for the next.
 */
static struct run *copied(struct run_pool *pool, struct run *run)
{
	struct run *copy = malloc(sizeof(*copy) + run->len);

	if (!copy)
		return NULL;
	memcpy(copy, run, sizeof(*run) + run->len);
	run_put(pool, run);
	return copy;
}

struct run *run_trim(struct run_pool *pool, struct run *run)
{
	struct run *less;

	if (run->len > run->size / 2)
		return run;
	less = run->len <= RUN_COPIED ? copied(pool, run) :
					realloc(run, sizeof(*run) + run->len);
	if (!less)
		return run;
	less->size = less->len;
	return less;
}
