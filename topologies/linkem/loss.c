/* SPDX-License-Identifier: MIT */
#include "loss.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "number.h"

enum { LIST_MAX = 1 << 20, LIST_TOLD = 64 };

/* --- parsing --- */

/* Up to @max numbers between commas; how many, or -EINVAL. */
static int split_numbers(const char *text, double *number, int max)
{
	char part[64];
	int n = 0;

	for (;;) {
		size_t len = strcspn(text, ",");

		if (n == max || len >= sizeof(part))
			return -EINVAL;
		memcpy(part, text, len);
		part[len] = '\0';
		if (number_parse(part, &number[n++]) < 0)
			return -EINVAL;
		if (!text[len])
			return n;
		text += len + 1;
	}
}

static bool is_probability(double p)
{
	return p >= 0 && p <= 1;
}

static int parse_bernoulli(struct loss *loss, const char *text, char *why,
			   size_t why_len)
{
	if (number_parse(text, &loss->p) < 0 || !is_probability(loss->p)) {
		snprintf(why, why_len,
			 "'%s' is not a probability from 0 to 1", text);
		return -EINVAL;
	}
	loss->model = loss->p > 0 ? LOSS_BERNOULLI : LOSS_NONE;
	return 0;
}

static int parse_gilbert_elliott(struct loss *loss, const char *text,
				 char *why, size_t why_len)
{
	double v[4] = { 0 };
	int n = split_numbers(text, v, 4);

	if (n < 3 || !is_probability(v[0]) || !is_probability(v[1]) ||
	    !is_probability(v[2]) || !is_probability(v[3])) {
		snprintf(why, why_len,
			 "'ge:%s' is not ge:P,R,BAD[,GOOD] of probabilities",
			 text);
		return -EINVAL;
	}
	loss->model = LOSS_GILBERT_ELLIOTT;
	loss->p = v[0];
	loss->r = v[1];
	loss->bad = v[2];
	loss->good = v[3];
	return 0;
}

static int parse_periodic(struct loss *loss, const char *text, char *why,
			  size_t why_len)
{
	char *end = NULL;

	if (number_whole(text, &end, &loss->every) < 0 || !loss->every)
		goto bad;
	loss->first = loss->every - 1;
	if (*end == ',' && number_whole(end + 1, &end, &loss->first) < 0)
		goto bad;
	if (*end)
		goto bad;
	loss->model = LOSS_PERIODIC;
	return 0;
bad:
	snprintf(why, why_len,
		 "'every:%s' is not every:N[,FIRST] with N from 1 on", text);
	return -EINVAL;
}

/* One more range; they may come in any order and overlap. */
static int add_range(struct loss *loss, const char *text, char **end)
{
	struct loss_range range;
	struct loss_range *grown;

	if (number_whole(text, end, &range.first) < 0)
		return -EINVAL;
	range.last = range.first;
	if (**end == '-' && number_whole(*end + 1, end, &range.last) < 0)
		return -EINVAL;
	if (range.last < range.first || loss->ranges == LIST_MAX)
		return -EINVAL;
	if (!(loss->ranges & (loss->ranges - 1))) {
		size_t room = loss->ranges ? 2 * loss->ranges : 1;

		grown = realloc(loss->range, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		loss->range = grown;
	}
	loss->range[loss->ranges++] = range;
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct loss_range *x = a;
	const struct loss_range *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

static void sort_ranges(struct loss *loss)
{
	struct loss_range *range = loss->range;
	size_t n = 0;

	if (!loss->ranges)
		return;
	qsort(range, loss->ranges, sizeof(*range), by_first);
	for (size_t i = 1; i < loss->ranges; i++) {
		if (range[i].first <= range[n].last) {
			if (range[i].last > range[n].last)
				range[n].last = range[i].last;
		} else {
			range[++n] = range[i];
		}
	}
	loss->ranges = n + 1;
}

static int read_line(void *into, char *line)
{
	struct loss *loss = into;
	char *end = line;
	int ret;

	line[strcspn(line, "\r\n#")] = '\0';
	if (!line[strspn(line, " \t")])
		return 0;
	ret = add_range(loss, line, &end);
	return !ret && end[strspn(end, " \t")] ? -EINVAL : ret;
}

static int parse_list(struct loss *loss, const char *text, char *why,
		      size_t why_len)
{
	char *end = NULL;
	int ret = 0;

	if (*text == '@') {
		ret = lines_read(text + 1, read_line, loss,
				 "not a packet's index or a range I-J", why,
				 why_len);
	} else {
		const char *at = text;

		while (!ret) {
			ret = add_range(loss, at, &end);
			if (ret || *end != ',')
				break;
			at = end + 1;
		}
		if (!ret && *end)
			ret = -EINVAL;
		if (ret)
			snprintf(why, why_len,
				 "'list:%s' is not a list of indices and ranges (3,7,9-12)",
				 text);
	}
	if (ret) {
		free(loss->range);
		return ret;
	}
	sort_ranges(loss);
	loss->model = LOSS_LIST;
	return 0;
}

int loss_parse(struct loss *loss, const char *text, char *why, size_t why_len)
{
	static const struct {
		const char *prefix;
		int (*parse)(struct loss *loss, const char *text, char *why,
			     size_t why_len);
	} models[] = {
		{ "bernoulli:", parse_bernoulli },
		{ "ge:", parse_gilbert_elliott },
		{ "every:", parse_periodic },
		{ "list:", parse_list },
	};
	struct loss parsed = { .model = LOSS_NONE };
	int ret = -EINVAL;

	if (!strcmp(text, "none")) {
		ret = 0;
	} else if (!strchr(text, ':')) {
		ret = parse_bernoulli(&parsed, text, why, why_len);
	} else {
		snprintf(why, why_len,
			 "'%s' is none of none, P, bernoulli:, ge:, every:, list:",
			 text);
		for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
			size_t len = strlen(models[i].prefix);

			if (!strncmp(text, models[i].prefix, len))
				ret = models[i].parse(&parsed, text + len, why,
						      why_len);
		}
	}
	if (ret)
		return ret;
	loss_fini(loss);
	*loss = parsed;
	return 0;
}

int loss_copy(struct loss *to, const struct loss *from)
{
	*to = *from;
	if (!from->ranges)
		return 0;
	to->range = malloc(from->ranges * sizeof(*to->range));
	if (!to->range) {
		to->ranges = 0;
		return -ENOMEM;
	}
	memcpy(to->range, from->range, from->ranges * sizeof(*to->range));
	return 0;
}

void loss_fini(struct loss *loss)
{
	free(loss->range);
	memset(loss, 0, sizeof(*loss));
}

/* --- judging --- */

static bool listed(const struct loss *loss, uint64_t index)
{
	size_t low = 0, high = loss->ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (loss->range[middle].last < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low < loss->ranges && loss->range[low].first <= index;
}

static bool gilbert_elliott(struct loss *loss, const struct rng *rng,
			    uint64_t index)
{
	bool lost = rng_uniform(rng, RNG_LOSS, index, 0) <
		    (loss->is_bad ? loss->bad : loss->good);

	if (rng_uniform(rng, RNG_STATE, index, 0) <
	    (loss->is_bad ? loss->r : loss->p))
		loss->is_bad = !loss->is_bad;
	return lost;
}

bool loss_take(struct loss *loss, const struct rng *rng, uint64_t index)
{
	switch (loss->model) {
	case LOSS_NONE:
		return false;
	case LOSS_BERNOULLI:
		return rng_uniform(rng, RNG_LOSS, index, 0) < loss->p;
	case LOSS_GILBERT_ELLIOTT:
		return gilbert_elliott(loss, rng, index);
	case LOSS_PERIODIC:
		return index >= loss->first &&
		       (index - loss->first) % loss->every == 0;
	case LOSS_LIST:
		return listed(loss, index);
	}
	return false;
}

/* --- telling --- */

static void print_list(const struct loss *loss, FILE *out)
{
	if (loss->ranges > LIST_TOLD) {
		fprintf(out, "list:(%zu ranges)", loss->ranges);
		return;
	}
	fputs("list:", out);
	for (size_t i = 0; i < loss->ranges; i++) {
		const struct loss_range *range = &loss->range[i];

		fprintf(out, "%s%llu", i ? "," : "",
			(unsigned long long)range->first);
		if (range->last > range->first)
			fprintf(out, "-%llu", (unsigned long long)range->last);
	}
}

void loss_print(const struct loss *loss, FILE *out)
{
	switch (loss->model) {
	case LOSS_NONE:
		fputs("none", out);
		break;
	case LOSS_BERNOULLI:
		fprintf(out, "bernoulli:%.12g", loss->p);
		break;
	case LOSS_GILBERT_ELLIOTT:
		fprintf(out, "ge:%.12g,%.12g,%.12g,%.12g", loss->p, loss->r,
			loss->bad, loss->good);
		break;
	case LOSS_PERIODIC:
		fprintf(out, "every:%llu,%llu",
			(unsigned long long)loss->every,
			(unsigned long long)loss->first);
		break;
	case LOSS_LIST:
		print_list(loss, out);
		break;
	}
}
