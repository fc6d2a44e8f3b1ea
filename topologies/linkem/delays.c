/* SPDX-License-Identifier: MIT */
#include "delays.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "lines.h"
#include "number.h"

enum { STEPS_MAX = 1 << 22, FOR_MS_MAX = 3600000, DELAY_MS_MAX = 60000 };

static int append(struct delays *d, int64_t for_ms, double delay_ms)
{
	struct delays_step *grown;
	int64_t start = d->n ? d->step[d->n - 1].end : 0;

	if (d->n == STEPS_MAX)
		return -E2BIG;
	if (!(d->n & (d->n - 1))) {
		grown = realloc(d->step,
				(d->n ? 2 * d->n : 1) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		d->step = grown;
	}
	d->step[d->n++] = (struct delays_step){
		start + for_ms * NS_PER_MS,
		llround(delay_ms * (double)NS_PER_MS),
	};
	return 0;
}

static int read_line(void *into, char *line)
{
	struct delays *d = into;
	uint64_t for_ms;
	double delay_ms;
	char *end = line;

	line[strcspn(line, "\r\n")] = '\0';
	if (!*line)
		return 0;
	if (number_whole(line, &end, &for_ms) < 0 || *end != ' ' ||
	    for_ms < 1 || for_ms > FOR_MS_MAX ||
	    number_parse(end + 1, &delay_ms) < 0 || delay_ms < 0 ||
	    delay_ms > DELAY_MS_MAX)
		return -EINVAL;
	return append(d, (int64_t)for_ms, delay_ms);
}

int delays_load(struct delays *d, const char *path, char *why, size_t why_len)
{
	struct delays read = { 0 };
	char wrong[64];
	int ret;

	snprintf(wrong, sizeof(wrong),
		 "not 'FOR_MS DELAY_MS', from 1 to %d and from 0 to %d",
		 FOR_MS_MAX, DELAY_MS_MAX);
	ret = lines_read(path, read_line, &read, wrong, why, why_len);
	if (!ret && !read.n) {
		snprintf(why, why_len, "%s: no delay in it", path);
		ret = -EINVAL;
	}
	if (ret) {
		delays_fini(&read);
		return ret;
	}
	*d = read;
	return 0;
}

int delays_copy(struct delays *to, const struct delays *from)
{
	size_t size = from->n * sizeof(*from->step);

	*to = *from;
	if (!size)
		return 0;
	to->step = malloc(size);
	if (!to->step) {
		memset(to, 0, sizeof(*to));
		return -ENOMEM;
	}
	memcpy(to->step, from->step, size);
	return 0;
}

void delays_fini(struct delays *d)
{
	free(d->step);
	memset(d, 0, sizeof(*d));
}

void delays_start(struct delays *d, int64_t now)
{
	d->started = true;
	d->base = now;
}

int64_t delays_at(const struct delays *d, int64_t at)
{
	int64_t into = (at - d->base) % d->step[d->n - 1].end;
	size_t low = 0, high = d->n - 1;

	/* The first step that ends behind it. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->step[middle].end > into)
			high = middle;
		else
			low = middle + 1;
	}
	return d->step[low].delay;
}
