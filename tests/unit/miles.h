/* SPDX-License-Identifier: MIT */
/* Last miles for the tests over modelled paths. */
#ifndef TM3_TEST_MILES_H
#define TM3_TEST_MILES_H

#include "model.h"

#define MBIT (1e6 / 8)
#define MS NS_PER_MS
#define S NS_PER_SEC

enum { OBJECT = 4096 };

/* A queue of @queue_ms at the rate. */
static inline struct model_params mile(double mbit, int64_t rtt, double queue_ms,
				      unsigned int pipes)
{
	struct model_params p = {
		.rate = mbit * MBIT, .rtt = rtt, .pipes = pipes,
		.queue = (size_t)(mbit * MBIT * queue_ms / 1e3),
		.policy = pipe_policies[0], .mode = AGGREGATE_DELAY,
	};

	return p;
}

#endif
