/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <string.h>

#include "clock.h"
#include "emulator.h"
#include "json.h"
#include "number.h"
#include "truth.h"

static void reject(FILE *out, const char *why)
{
	fputs("{\"ok\":false,\"error\":", out);
	json_string(out, why);
	fputs("}\n", out);
}

static void get(struct emulator *e, FILE *out)
{
	fputs("{\"ok\":true,", out);
	truth_head(e, out);
	fputc(',', out);
	truth_params(e, out);
	fputs("}\n", out);
}

/* The word at *@line, which then points behind it. */
static char *word(char **line)
{
	char *start = *line + strspn(*line, " \t\r");
	size_t len = strcspn(start, " \t\r");

	*line = start + len;
	if (**line)
		*(*line)++ = '\0';
	return start;
}

/* Both are checked before either is changed. */
static int change(struct emulator *e, int first, int last, const char *words,
		  int64_t now, char *why, size_t why_len)
{
	struct params fresh[2];

	for (int i = first; i <= last; i++) {
		int ret = params_copy(&fresh[i], &e->link[i].params);

		if (ret) {
			snprintf(why, why_len, "out of memory");
		} else {
			ret = params_set(&fresh[i], words, why, why_len);
			if (!ret)
				ret = params_check(&fresh[i], why, why_len);
			if (ret)
				params_fini(&fresh[i]);
		}
		if (ret) {
			while (--i >= first)
				params_fini(&fresh[i]);
			return ret;
		}
	}
	for (int i = first; i <= last; i++)
		link_configure(&e->link[i], &fresh[i], now);
	return 0;
}

static void set(struct emulator *e, char *line, FILE *out)
{
	char why[512];
	char *which = word(&line);
	int64_t now = emulator_settle(e);
	int first = !strcmp(which, "ba");
	int last = strcmp(which, "ab") != 0;

	if (strcmp(which, "ab") && strcmp(which, "ba") &&
	    strcmp(which, "both")) {
		snprintf(why, sizeof(why), "set: '%.40s' is not ab, ba or both",
			 which);
		reject(out, why);
		return;
	}
	if (change(e, first, last, line, now, why, sizeof(why))) {
		reject(out, why);
		return;
	}
	fprintf(out, "{\"ok\":true,\"t_ms\":%.3f",
		(double)(now - e->started) / (double)NS_PER_MS);
	fprintf(out, ",\"from_packet\":{\"ab\":%llu,\"ba\":%llu},",
		(unsigned long long)e->link[0].next_index,
		(unsigned long long)e->link[1].next_index);
	truth_params(e, out);
	fputs("}\n", out);
}

static void restart(struct emulator *e, char *line, FILE *out)
{
	char why[128];
	char *text = word(&line);
	char *end = text;
	uint64_t seed;

	if (number_whole(text, &end, &seed) < 0 || *end) {
		snprintf(why, sizeof(why), "restart: '%.40s' is not a seed",
			 text);
		reject(out, why);
		return;
	}
	emulator_restart(e, seed);
	get(e, out);
}

void command_answer(void *emulator, char *line, FILE *out)
{
	struct emulator *e = emulator;
	char why[128];
	const char *name = word(&line);

	if (!strcmp(name, "get")) {
		get(e, out);
	} else if (!strcmp(name, "set")) {
		set(e, line, out);
	} else if (!strcmp(name, "restart")) {
		restart(e, line, out);
	} else if (!strcmp(name, "truth")) {
		truth_print(e, "running", out);
	} else if (!strcmp(name, "stop")) {
		e->stop = true;
		fputs("{\"ok\":true}\n", out);
	} else {
		snprintf(why, sizeof(why),
			 "'%.40s' is none of get, set, restart, truth, stop", name);
		reject(out, why);
	}
}
