/* SPDX-License-Identifier: MIT */
/* The command line. */
#ifndef LINKEM_OPTIONS_H
#define LINKEM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "params.h"
#include "tap.h"

enum { FIFO_OFF = 0, FIFO_AUTO = -1 };

struct options {
	struct tap_spec end[2];
	struct params params[2];	/* a to b, b to a */
	uint64_t seed;
	const char *control;
	const char *truth;
	const char *samples;
	double samples_ms;
	const char *drops;
	const char *pcap[2];
	uint32_t snaplen;
	int fifo;			/* priority, or one of the above */
	int cpu;			/* -1: any */
	bool spin;
	bool with_parent;
	uint64_t memory_mb;
	uint64_t coalesce_us;
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };

/* Says on stderr what is wrong, in one line; prints --help on stdout. */
enum options_result options_parse(struct options *o, int argc, char **argv);
void options_fini(struct options *o);

#endif
