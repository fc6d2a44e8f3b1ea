/* SPDX-License-Identifier: MIT */
/*
 * The numbers that a proxy tells of itself, once for all who tell them: --stats
 * writes them as JSON, --metrics as Prometheus has it. Each is a field of a struct.
 */
#ifndef TM3_FIGURES_H
#define TM3_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../conn/conn.h"

struct pipe;

enum { FIGURES_MAX = 32, FIGURE_ENDS = CONN_END_IDLE + 1 };

struct figure {
	const char *name;
	const char *help;
	bool counts;		/* up, from 0; else it is as it is now */
	bool fraction;		/* a double, told to three places */
	size_t offset, size;	/* of the field: 4 or 8 bytes */
};

/* Each ends with a name of NULL. */
extern const struct figure pipe_figures[];	/* of struct pipe */
extern const struct figure aggregate_figures[];	/* of struct aggregate */
extern const struct figure counts_figures[];	/* of struct stats_counts */
extern const struct figure queues_figures[];	/* of struct queues */

void figure_print(const struct figure *f, const void *of, FILE *out);

/* Sums of those that count, by their places in the lists. */
struct sums {
	uint64_t pipe[FIGURES_MAX];
	uint64_t counts[FIGURES_MAX];
	uint64_t ended[FIGURE_ENDS];	/* connections, by how */
};

void sums_add(uint64_t sum[FIGURES_MAX], const struct figure *figures,
	      const void *of);

#endif
