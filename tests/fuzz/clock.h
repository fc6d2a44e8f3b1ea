/* SPDX-License-Identifier: MIT */
/*
 * The loop's clock as the input says, so that a run is the same each time and
 * need not wait for what takes seconds. All fuzz targets are linked with
 * --wrap=clock_gettime; outside of a run the clock is the machine's.
 */
#ifndef TM3_FUZZ_CLOCK_H
#define TM3_FUZZ_CLOCK_H

#include <stdint.h>

void clock_begin(void);
void clock_advance(int64_t ns);
void clock_end(void);

#endif
