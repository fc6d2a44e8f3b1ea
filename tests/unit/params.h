/* SPDX-License-Identifier: MIT */
/* A modelled last mile, and who is at its ends. */
#ifndef TM3_TEST_PARAMS_H
#define TM3_TEST_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cellular.h"
#include "mux/path/aggregate.h"
#include "mux/sched/sched.h"
#include "mux/settings/settings.h"

enum tcp_cc { TCP_CUBIC, TCP_BBR };

struct model_params {
	double rate;		/* bytes a second */
	int64_t rtt;		/* ns, without any queue */
	size_t queue;		/* bytes that may wait */
	double loss;		/* share of what is sent, */
	double burst;		/* in bursts of so many on average; 0: alone */
	double loss_back;	/* share of acknowledgements */
	int64_t jitter;		/* ns at most, uniform */
	bool reorder;		/* by jitter */
	int64_t jitter_back;	/* of acknowledgements, in order */
	const struct cellular *trace;	/* of the rate, or NULL */

	int64_t silent_from, silent_to;	/* of the clock: nothing passes then, either way */

	unsigned int pipes;
	unsigned int paths;	/* they are on so many, in equal parts; 0: on one */
	const struct model_params *second;	/* mile of the second path; NULL: the same one */
	bool one_queue;		/* which is that of the first path; rate and queue are its */
	enum reinject_mode reinject;
	enum tcp_cc cc;
	bool delayed_acks;	/* every other one, or after 40 ms */
	bool datagrams;		/* pass on each path, beside what is modelled */
	double lost_stamps;	/* share of those that were asked for */
	int64_t late;		/* ns at most until the process wakes up */
	const struct pipe_policy *policy;
	enum aggregate_mode mode;
};

#endif
