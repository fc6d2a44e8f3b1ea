/* SPDX-License-Identifier: MIT */
/* A bulk over a modelled last mile, and an object beside it, as several tests have them. */
#ifndef TM3_TEST_BULK_H
#define TM3_TEST_BULK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "miles.h"
#include "model.h"
#include "random.h"

static inline double used(const struct model *model, int64_t ns)
{
	return (double)model->arrived / model->is.rate / ((double)ns / 1e9);
}

/* The queue that is wished for: some milliseconds, three segments at least. */
static inline int64_t wish(const struct model_params *is)
{
	int64_t segments = (int64_t)(3 * MODEL_MSS / is->rate * 1e9);

	return segments > 4 * MS ? segments : 4 * MS;
}

static inline void bulk_from_the_start(struct model *model,
				       const struct model_params *is,
				       struct random *r, int64_t warm)
{
	model_init(model, is, r);
	model_offer(model, 0, UINT64_MAX);
	model_run(model, warm);
	model_forget(model);
}

static inline double object_ms(struct model *model)
{
	int64_t at = model->now;

	model_offer(model, 0, OBJECT);
	model_run(model, 300 * MS);
	assert_true(model->conn[0].done_at > at);
	return (double)(model->conn[0].done_at - at) / 1e6;
}

#endif
