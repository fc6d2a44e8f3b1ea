/* SPDX-License-Identifier: MIT */
/*
 * Laws for what the pipes hold together, side by side over the modelled
 * matrix, a line a path and law: sweep [-n RANDOM PATHS] [-f FIRST SEED]
 * [-c: random ones beside others] [-o PART OF A NAME] [MODE...]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/matrix.h"

static struct {
	enum aggregate_mode modes[8];
	unsigned int nmodes;
	struct {
		unsigned int n, calm;	/* without yielding */
		double yield, of_off, p50, p95;
	} all[8];
} sweep;

static void heading(void)
{
	printf("%-44s %-6s %6s | %7s %7s %7s %7s | %7s %7s | %6s | %6s %8s | %6s %7s\n",
	       "path", "law", "idle", "p50", "p90", "p95", "p99", "goodput",
	       "of off", "yield", "drops", "start95",
	       "wait99", "first99");
}

static void row(const struct matrix_case *c)
{
	for (unsigned int i = 0; i < sweep.nmodes; i++) {
		struct matrix_found f = matrix_measure(c, sweep.modes[i]);

		printf("%-44s %-6s %6.1f | %7.1f %7.1f %7.1f %7.1f | %7.3f %7.3f | %6.3f | %6llu %8.1f | %6.1f %7.1f\n",
		       i ? "" : c->name, aggregate_mode_name(sweep.modes[i]),
		       f.idle_ms, f.p50, f.p90, f.p95, f.p99, f.goodput,
		       f.of_off, f.yield, (unsigned long long)f.start_drops,
		       f.start_p95, f.wait99, f.first_wait99);
		if (c->rivals)
			continue;
		sweep.all[i].n++;
		sweep.all[i].calm += f.yield <= 0;
		sweep.all[i].yield += f.yield;
		sweep.all[i].of_off += f.of_off;
		sweep.all[i].p50 += isnan(f.p50) ? 0 : f.p50;
		sweep.all[i].p95 += isnan(f.p95) ? 0 : f.p95;
	}
	fflush(stdout);
}

static void take_mode(const char *name)
{
	for (int i = 0; aggregate_mode_name((enum aggregate_mode)i); i++) {
		if (!strcmp(aggregate_mode_name((enum aggregate_mode)i), name))
			sweep.modes[sweep.nmodes++] = (enum aggregate_mode)i;
	}
}

int main(int argc, char **argv)
{
	unsigned long n = 0, first = 1;
	struct matrix_case (*at_random)(uint64_t seed) = matrix_random;
	const char *only = NULL;
	struct matrix_case c;
	int opt;

	while ((opt = getopt(argc, argv, "n:f:o:c")) != -1) {
		if (opt == 'n')
			n = strtoul(optarg, NULL, 10);
		else if (opt == 'f')
			first = strtoul(optarg, NULL, 10);
		else if (opt == 'c')
			at_random = matrix_crowded;
		else if (opt == 'o')
			only = optarg;
		else
			return 2;
	}
	for (; optind < argc && sweep.nmodes < 8; optind++)
		take_mode(argv[optind]);
	if (!sweep.nmodes)
		take_mode("delay");
	heading();
	for (unsigned int i = 0; !n && matrix_named(i, &c); i++) {
		if (!only || strstr(c.name, only))
			row(&c);
	}
	for (unsigned long i = 0; i < n; i++) {
		c = at_random(first + i);
		row(&c);
	}
	for (unsigned int i = 0; i < sweep.nmodes && sweep.all[i].n; i++)
		printf("%s: %u paths without rivals, %u never in yield, yield %.4f, of off %.4f, p50 %.1f, p95 %.1f on average\n",
		       aggregate_mode_name(sweep.modes[i]), sweep.all[i].n,
		       sweep.all[i].calm, sweep.all[i].yield / sweep.all[i].n,
		       sweep.all[i].of_off / sweep.all[i].n,
		       sweep.all[i].p50 / sweep.all[i].n,
		       sweep.all[i].p95 / sweep.all[i].n);
	return 0;
}
