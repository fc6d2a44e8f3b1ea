/* SPDX-License-Identifier: MIT */
#include "halted.h"

#include <stdbool.h>
#include <time.h>

#define NS_PER_SEC INT64_C(1000000000)

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

static bool halted;
static int64_t stands_at;	/* while it is halted */
static int64_t ahead;		/* of the machine's, while it goes */
static int64_t wall_ahead;	/* the wall clock, of the machine's */

static int64_t machine(void)
{
	struct timespec ts;

	__real_clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

void clock_halt(void)
{
	stands_at = machine() + ahead;
	halted = true;
}

void clock_pass(int64_t ns)
{
	stands_at += ns;
}

void clock_go_on(void)
{
	int64_t later = stands_at - machine();

	if (halted && later > ahead)
		ahead = later;
	halted = false;
}

void clock_set_wall(int64_t ns)
{
	wall_ahead = ns;
}

static int read_wall(struct timespec *ts)
{
	int err = __real_clock_gettime(CLOCK_REALTIME, ts);
	int64_t now = ts->tv_sec * NS_PER_SEC + ts->tv_nsec + wall_ahead;

	ts->tv_sec = now / NS_PER_SEC;
	ts->tv_nsec = now % NS_PER_SEC;
	return err;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t now;

	if (id == CLOCK_REALTIME)
		return read_wall(ts);
	if (id == CLOCK_THREAD_CPUTIME_ID ? !halted :
	    id != CLOCK_MONOTONIC || (!halted && !ahead))
		return __real_clock_gettime(id, ts);
	now = halted ? stands_at : machine() + ahead;
	ts->tv_sec = now / NS_PER_SEC;
	ts->tv_nsec = now % NS_PER_SEC;
	return 0;
}
