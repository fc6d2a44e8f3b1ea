/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "number.h"

enum { BYTES_MAX = 1000000000, DELAY_MS_MAX = 10000 };

/* --- as words --- */

static int parse_limit(struct gate_spec *spec, enum gate_kind kind,
		       const char *text, char *why, size_t why_len)
{
	double least = kind == GATE_BYTES ? 1 : 0.1;
	double most = kind == GATE_BYTES ? BYTES_MAX : DELAY_MS_MAX;
	double limit;

	if (number_parse(text, &limit) < 0) {
		snprintf(why, why_len, "'%.80s' is not a plain number", text);
		return -EINVAL;
	}
	if (limit < least || limit > most) {
		snprintf(why, why_len, "%.80s is not from %.12g to %.12g", text,
			 least, most);
		return -EINVAL;
	}
	spec->kind = kind;
	spec->limit = limit;
	return 0;
}

int gate_parse(struct gate_spec *spec, const char *text, char *why,
	       size_t why_len)
{
	if (!strcmp(text, "none")) {
		memset(spec, 0, sizeof(*spec));
		return 0;
	}
	if (!strncmp(text, "bytes:", 6))
		return parse_limit(spec, GATE_BYTES, text + 6, why, why_len);
	if (!strncmp(text, "delay:", 6))
		return parse_limit(spec, GATE_DELAY, text + 6, why, why_len);
	snprintf(why, why_len, "'%.80s' is none of none, bytes:N, delay:MS",
		 text);
	return -EINVAL;
}

void gate_print(const struct gate_spec *spec, FILE *out)
{
	static const char *const name[] = { "none", "bytes:", "delay:" };

	fputs(name[spec->kind], out);
	if (spec->kind != GATE_NONE)
		fprintf(out, "%.12g", spec->limit);
}

/* --- when --- */

/* So many bytes may wait when a packet passes. */
static double most(const struct gate *g, const struct estimate *e)
{
	if (g->spec.kind == GATE_BYTES)
		return ceil(g->spec.limit) - 1;
	return g->spec.limit * (double)NS_PER_MS * e->rate;
}

int64_t gate_opens(const struct gate *g, const struct estimate *e,
		   uint64_t bytes)
{
	if (g->spec.kind == GATE_NONE || g->fell)
		return 0;
	if (g->sees)
		return (double)bytes <= most(g, e) ? 0 : NEVER;
	return estimate_falls_to(e, most(g, e));
}

void gate_owed(struct gate *g, int64_t now)
{
	g->quiet = now;
}

void gate_heard(struct gate *g, int64_t now)
{
	g->quiet = now;
	g->fell = false;
}

int64_t gate_falls(const struct gate *g)
{
	if (!g->holds || g->fell)
		return NEVER;
	return g->quiet + GATE_PATIENCE;
}

void gate_fall(struct gate *g)
{
	g->fell = true;
	g->falls++;
}
