/* SPDX-License-Identifier: MIT */
/* The paper's policy over the sum of the pipes: S = lambda x RTTmin / RTTest x C. */
#include "aggregate_inside.h"

void aggregate_windows(struct aggregate *a, double cwnd, double rttmin,
		       double rtt, size_t mss)
{
	double bytes = a->lambda * rttmin / rtt * cwnd;

	if (a->mode != AGGREGATE_DSWA || rtt <= 0 || rttmin <= 0)
		return;
	a->rate = cwnd / rtt;
	a->limit = bytes > (double)(FLOOR_SEGMENTS * mss) ? (size_t)bytes :
		FLOOR_SEGMENTS * mss;
}
