/* SPDX-License-Identifier: MIT */
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "lines.h"
#include "number.h"

enum { OPPORTUNITIES_MAX = 1 << 26 };

static int append(struct trace *t, uint32_t at_ms)
{
	uint32_t *grown;

	if (t->n && at_ms < t->at_ms[t->n - 1])
		return -EINVAL;
	if (t->n == OPPORTUNITIES_MAX)
		return -E2BIG;
	if (!(t->n & (t->n - 1))) {
		grown = realloc(t->at_ms, (t->n ? 2 * t->n : 1) *
						  sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->at_ms = grown;
	}
	t->at_ms[t->n++] = at_ms;
	return 0;
}

static int read_line(void *into, char *line)
{
	struct trace *t = into;
	char *end = line;
	uint64_t at_ms;

	line[strcspn(line, "\r\n")] = '\0';
	if (!line[strspn(line, " \t")])
		return 0;
	if (number_whole(line, &end, &at_ms) < 0 || end[strspn(end, " \t")] ||
	    at_ms > UINT32_MAX)
		return -EINVAL;
	return append(t, (uint32_t)at_ms);
}

int trace_load(struct trace *t, const char *path, char *why, size_t why_len)
{
	struct trace read = { 0 };
	int ret = lines_read(path, read_line, &read,
			     "not milliseconds, one number a line that is no less than the last",
			     why, why_len);

	if (!ret && (!read.n || !read.at_ms[read.n - 1])) {
		snprintf(why, why_len, "%s: a trace must last longer than 0 ms",
			 path);
		ret = -EINVAL;
	}
	if (ret) {
		trace_fini(&read);
		return ret;
	}
	*t = read;
	return 0;
}

int trace_copy(struct trace *to, const struct trace *from)
{
	size_t size = from->n * sizeof(*from->at_ms);

	*to = *from;
	if (!size)
		return 0;
	to->at_ms = malloc(size);
	if (!to->at_ms) {
		memset(to, 0, sizeof(*to));
		return -ENOMEM;
	}
	memcpy(to->at_ms, from->at_ms, size);
	return 0;
}

void trace_fini(struct trace *t)
{
	free(t->at_ms);
	memset(t, 0, sizeof(*t));
}

static int64_t period(const struct trace *t)
{
	return t->at_ms[t->n - 1] * NS_PER_MS;
}

void trace_start(struct trace *t, int64_t now)
{
	t->started = true;
	t->base = now;
	t->next = 0;
	t->passed = 0;
}

int64_t trace_peek(const struct trace *t)
{
	return t->base + t->at_ms[t->next] * NS_PER_MS;
}

void trace_use(struct trace *t)
{
	t->passed++;
	if (++t->next < t->n)
		return;
	t->next = 0;
	t->base += period(t);
}

void trace_skip(struct trace *t, int64_t now)
{
	int64_t whole = (now - t->base) / period(t) - 1;

	if (whole > 0) {
		t->base += whole * period(t);
		t->passed += (uint64_t)whole * t->n;
	}
	while (trace_peek(t) < now)
		trace_use(t);
}

uint64_t trace_rate(const struct trace *t, uint32_t bytes)
{
	return (uint64_t)((double)t->n * bytes * 8 * NS_PER_S /
			  (double)period(t));
}
