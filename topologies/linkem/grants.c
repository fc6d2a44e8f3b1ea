/* SPDX-License-Identifier: MIT */
#include "grants.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "number.h"

#define BIT_NS_PER_BYTE (8 * (uint64_t)NS_PER_S)

int grants_parse(struct grants_spec *spec, const char *text, char *why,
		 size_t why_len)
{
	struct grants_spec found;
	const char *at = text;

	if (!strcmp(text, "none")) {
		memset(spec, 0, sizeof(*spec));
		return 0;
	}
	if (number_unit(&at, "ms,delay=", &found.every_ms) < 0 ||
	    number_unit(&at, "ms", &found.delay_ms) < 0 || *at) {
		snprintf(why, why_len,
			 "'%.80s' is neither none nor written like 5ms,delay=8ms",
			 text);
		return -EINVAL;
	}
	if (found.every_ms < 1 || found.every_ms > 100) {
		snprintf(why, why_len, "every %.12g ms is not from 1 to 100",
			 found.every_ms);
		return -EINVAL;
	}
	if (found.delay_ms < 0.1 || found.delay_ms > 1000) {
		snprintf(why, why_len, "a delay of %.12g ms is not from 0.1 to 1000",
			 found.delay_ms);
		return -EINVAL;
	}
	*spec = found;
	return 0;
}

void grants_print(const struct grants_spec *spec, FILE *out)
{
	if (spec->every_ms > 0)
		fprintf(out, "%.12gms,delay=%.12gms", spec->every_ms,
			spec->delay_ms);
	else
		fputs("none", out);
}

void grants_configure(struct grants *g, const struct grants_spec *spec,
		      int64_t now)
{
	g->every = llround(spec->every_ms * (double)NS_PER_MS);
	g->delay = llround(spec->delay_ms * (double)NS_PER_MS);
	g->base = now;
	g->rest = 0;
}

int64_t grants_tick_after(const struct grants *g, int64_t now)
{
	return g->base + ((now - g->base) / g->every + 1) * g->every;
}

uint64_t grants_wanted(const struct grants *g, uint64_t reported)
{
	return reported > g->under_way ? reported - g->under_way : 0;
}

uint64_t grants_capacity(struct grants *g, uint64_t bit_per_s)
{
	uint64_t work = bit_per_s * (uint64_t)g->every + g->rest;

	g->rest = work % BIT_NS_PER_BYTE;
	return work / BIT_NS_PER_BYTE;
}

void grants_give(struct grants *g, uint64_t bytes, int64_t now)
{
	struct grant *last = &g->ring[(g->first + g->n - 1) % GRANTS_MAX];
	int64_t due = now + g->delay;

	if (!bytes)
		return;
	/* A shorter delay than before lets no grant overtake another. */
	if (g->n && due < last->due)
		due = last->due;
	g->given++;
	g->under_way += bytes;
	if (g->n == GRANTS_MAX) {
		last->bytes += bytes;
		return;
	}
	g->ring[(g->first + g->n++) % GRANTS_MAX] = (struct grant){ due, bytes };
}

int64_t grants_due(const struct grants *g)
{
	return g->n ? g->ring[g->first].due : NEVER;
}

uint64_t grants_take(struct grants *g)
{
	uint64_t bytes = g->ring[g->first].bytes;

	g->first = (g->first + 1) % GRANTS_MAX;
	g->n--;
	g->under_way -= bytes;
	g->granted += bytes;
	return bytes;
}

void grants_pad(struct grants *g, uint64_t bytes)
{
	g->padded += bytes;
}

void grants_forget(struct grants *g)
{
	g->n = 0;
	g->under_way = 0;
}
