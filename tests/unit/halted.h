/* SPDX-License-Identifier: MIT */
/*
 * A clock that stands still, for what takes seconds: time goes by when the test says
 * so, and by as much. All unit tests are linked with --wrap=clock_gettime; as long as
 * nobody halts the clock it is the machine's. While it stands nothing may wait by it,
 * as run_until() does: run_rounds() does not.
 */
#ifndef TM3_TEST_HALTED_H
#define TM3_TEST_HALTED_H

#include <stdint.h>

/* CLOCK_MONOTONIC stands from here on, and for a thread's own processor time it is told, too. */
void clock_halt(void);
/* While it stands: it is so much later. */
void clock_pass(int64_t ns);
/* It goes on from where it stands, and never goes back. */
void clock_go_on(void);
/* CLOCK_REALTIME was set: it is so far ahead of the one by which the kernel stamps. */
void clock_set_wall(int64_t ns);

#endif
