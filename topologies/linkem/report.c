/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <errno.h>
#include <math.h>

#include "number.h"

enum { EDGE_FIRST = 10, CAP_KB_MIN = 1, CAP_KB_MAX = 1000000 };

int report_parse(struct report_spec *spec, const char *text, char *why,
		 size_t why_len)
{
	struct report_spec found;
	const char *at = text;
	double levels;

	if (number_unit(&at, ",cap=", &levels) < 0 ||
	    number_unit(&at, "KB", &found.cap_kb) < 0 || *at) {
		snprintf(why, why_len, "'%.80s' is not written like 64,cap=150KB",
			 text);
		return -EINVAL;
	}
	if (levels != 32 && levels != 64 && levels != 256) {
		snprintf(why, why_len, "%.12g levels are none of 32, 64, 256",
			 levels);
		return -EINVAL;
	}
	if (found.cap_kb < CAP_KB_MIN || found.cap_kb > CAP_KB_MAX) {
		snprintf(why, why_len, "a cap of %.12g KB is not from %d to %d",
			 found.cap_kb, CAP_KB_MIN, CAP_KB_MAX);
		return -EINVAL;
	}
	found.levels = (uint32_t)levels;
	*spec = found;
	return 0;
}

void report_print(const struct report_spec *spec, FILE *out)
{
	fprintf(out, "%u,cap=%.12gKB", spec->levels, spec->cap_kb);
}

void report_init(struct report *r, const struct report_spec *spec)
{
	double cap = spec->cap_kb * 1e3;
	uint32_t last = spec->levels - 2;	/* the one that ends at the cap */

	r->levels = spec->levels;
	r->edge[0] = 0;
	for (uint32_t i = 1; i < last; i++)
		r->edge[i] = (uint32_t)ceil(EDGE_FIRST *
					    pow(cap / EDGE_FIRST,
						(i - 1) / (last - 1.0)));
	r->edge[last] = (uint32_t)cap;
	r->edge[last + 1] = (uint32_t)cap;
}

uint32_t report_level(const struct report *r, uint64_t bytes)
{
	uint32_t low = 0, high = r->levels - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (bytes <= r->edge[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint32_t report_most(const struct report *r, uint32_t level)
{
	return r->edge[level];
}

bool report_is_last(const struct report *r, uint32_t level)
{
	return level == r->levels - 1;
}
