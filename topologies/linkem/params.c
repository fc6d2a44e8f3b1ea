/* SPDX-License-Identifier: MIT */
#include "params.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../../mux/base/reject.h"
#include "host.h"
#include "json.h"
#include "number.h"

/* OPTIONAL: `none` will do as well. WHOLE: without a fraction. */
enum kind {
	NUMBER, WHOLE, OPTIONAL, OPTIONAL_WHOLE, CHOICE, LOSS, TRACE, DELAYS,
	GRANTS, GATE, REPORT, INTERACTIVE,
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	double low, high;	/* of numbers */
	const char *choices;	/* of CHOICE: by their number, blank between */
	const char *help;
};

#define AT(member) offsetof(struct params, member)

static const struct key keys[] = {
	{ "rate_mbps", OPTIONAL, AT(rate_mbps), 0.001, 100000, NULL,
	  "rate, Mbit/s; ends a trace" },
	{ "trace", TRACE, AT(trace), 0, 0, NULL,
	  "FILE in Mahimahi's format; ends a rate" },
	{ "trace_bytes", OPTIONAL_WHOLE, AT(trace_bytes), 1, 65600, NULL,
	  "bytes of an opportunity; none: MTU + overhead" },
	{ "overhead_bytes", WHOLE, AT(overhead_bytes), 0, 1000, NULL,
	  "counted on top of each IP packet (14)" },
	{ "delay_ms", NUMBER, AT(delay_ms), 0, 60000, NULL,
	  "propagation delay, one way" },
	{ "delay_trace", DELAYS, AT(delays), 0, 0, NULL,
	  "FILE with lines FOR_MS DELAY_MS in place of delay_ms; none" },
	{ "jitter_ms", NUMBER, AT(jitter_ms), 0, 60000, NULL,
	  "size of the jitter; order is kept" },
	{ "jitter_dist", CHOICE, AT(jitter_dist), 0, 0,
	  "uniform normal exponential pareto", "its distribution" },
	{ "jitter_reorder", CHOICE, AT(jitter_reorder), 0, 0, "no yes",
	  "yes: jitter may change the order" },
	{ "queue_ms", OPTIONAL, AT(queue_ms), 0.001, 600000, NULL,
	  "waiting room, ms at the rate in force" },
	{ "queue_bytes", OPTIONAL_WHOLE, AT(queue_bytes), 1, 1e12, NULL,
	  "waiting room, bytes as the rate counts them" },
	{ "queue_packets", OPTIONAL_WHOLE, AT(queue_packets), 1, 1e9, NULL,
	  "waiting room, packets; 1000 if no limit is given" },
	{ "aqm", CHOICE, AT(aqm), 0, 0, "tail codel",
	  "who is dropped: the newest, or as RFC 8289 says" },
	{ "codel_target_ms", NUMBER, AT(codel_target_ms), 0.001, 60000, NULL,
	  "CoDel's target (5)" },
	{ "codel_interval_ms", NUMBER, AT(codel_interval_ms), 0.001, 60000,
	  NULL, "CoDel's interval (100)" },
	{ "loss", LOSS, AT(loss), 0, 0, NULL,
	  "none, P, ge:P,R,BAD[,GOOD], every:N[,FIRST], list:I,J-K, list:@FILE" },
	{ "loss_at", CHOICE, AT(loss_at), 0, 0, "entry exit",
	  "before the queue, or after it has taken its share of the rate" },
	{ "duplicate", NUMBER, AT(duplicate), 0, 1, NULL,
	  "probability that a packet comes twice" },
	{ "reorder", NUMBER, AT(reorder), 0, 1, NULL,
	  "probability that a packet is held back by reorder_ms" },
	{ "reorder_ms", NUMBER, AT(reorder_ms), 0, 60000, NULL,
	  "how long it is held back, for others to overtake" },
	{ "grants", GRANTS, AT(radio.grants), 0, 0, NULL,
	  "EVERYms,delay=DELAYms: a radio link that sends as granted; none" },
	{ "firmware_kb", NUMBER, AT(radio.firmware_kb), 2, 1e6, NULL,
	  "radio: room of the queue below the device, KB (300)" },
	{ "report_levels", REPORT, AT(radio.report), 0, 0, NULL,
	  "radio: 32, 64 or 256,cap=NKB: how its fill is told (64,cap=150KB)" },
	{ "telemetry_ms", OPTIONAL, AT(radio.telemetry_ms), 0, 500, NULL,
	  "radio: how late the gate learns of reports and grants (100)" },
	{ "gate", GATE, AT(radio.gate), 0, 0, NULL,
	  "radio: none, bytes:N or delay:MS: what may wait in the firmware" },
	{ "host", CHOICE, AT(host), 0, 0, "fifo prio codel",
	  "radio: the order of the queue above the gate" },
	{ "interactive", INTERACTIVE, AT(interactive), 0, 0, NULL,
	  "host=prio: dscp:N[-M] and port:N[-M], commas between (dscp:32-63)" },
};

enum { KEYS = sizeof(keys) / sizeof(keys[0]), WORD_MAX = 4096 };

/* 32 to 63: class selectors 4 to 7, AF4 and EF, the upper half. */
static const uint64_t DSCP_INTERACTIVE = 0xffffffff00000000;

static void *member(struct params *p, const struct key *key)
{
	return (char *)p + key->offset;
}

static double *number_at(struct params *p, const struct key *key)
{
	return member(p, key);
}

static int *choice_at(struct params *p, const struct key *key)
{
	return member(p, key);
}

void params_init(struct params *p)
{
	memset(p, 0, sizeof(*p));
	p->overhead_bytes = 14;
	p->codel_target_ms = 5;
	p->codel_interval_ms = 100;
	p->radio.firmware_kb = 300;
	p->radio.report.levels = 64;
	p->radio.report.cap_kb = 150;
	p->radio.telemetry_ms = 100;
	p->interactive.dscp = DSCP_INTERACTIVE;
}

static void drop_trace(struct params *p)
{
	trace_fini(&p->trace);
	free(p->trace_path);
	p->trace_path = NULL;
}

static void drop_delays(struct params *p)
{
	delays_fini(&p->delays);
	free(p->delays_path);
	p->delays_path = NULL;
}

void params_fini(struct params *p)
{
	drop_trace(p);
	drop_delays(p);
	loss_fini(&p->loss);
}

int params_copy(struct params *to, const struct params *from)
{
	*to = *from;
	to->trace_path = from->trace_path ? strdup(from->trace_path) : NULL;
	to->delays_path = from->delays_path ? strdup(from->delays_path) : NULL;
	memset(&to->trace, 0, sizeof(to->trace));
	memset(&to->delays, 0, sizeof(to->delays));
	if (loss_copy(&to->loss, &from->loss) == 0 &&
	    trace_copy(&to->trace, &from->trace) == 0 &&
	    delays_copy(&to->delays, &from->delays) == 0 &&
	    !to->trace_path == !from->trace_path &&
	    !to->delays_path == !from->delays_path)
		return 0;
	params_fini(to);
	return -ENOMEM;
}

/* --- one word --- */

static bool is_optional(const struct key *key)
{
	return key->kind == OPTIONAL || key->kind == OPTIONAL_WHOLE;
}

/* What stands for `none`: no value that could be given. */
static double none_of(const struct key *key)
{
	return key->low > 0 ? 0 : -1;
}

static int set_number(struct params *p, const struct key *key,
		      const char *value, char *why, size_t why_len)
{
	double v;

	if (is_optional(key) && !strcmp(value, "none")) {
		*number_at(p, key) = none_of(key);
		return 0;
	}
	if (number_parse(value, &v) < 0) {
		snprintf(why, why_len, "'%.80s' is not a plain number", value);
		return -EINVAL;
	}
	if (v < key->low || v > key->high) {
		snprintf(why, why_len, "%.80s is not from %.12g to %.12g", value,
			 key->low, key->high);
		return -EINVAL;
	}
	if ((key->kind == WHOLE || key->kind == OPTIONAL_WHOLE) &&
	    v != floor(v)) {
		snprintf(why, why_len, "%.80s is not a whole number", value);
		return -EINVAL;
	}
	*number_at(p, key) = v;
	if (number_at(p, key) == &p->rate_mbps)
		drop_trace(p);
	return 0;
}

static int set_choice(struct params *p, const struct key *key,
		      const char *value, char *why, size_t why_len)
{
	const char *at = key->choices;
	size_t len = strlen(value);

	for (int i = 0; *at; i++) {
		size_t n = strcspn(at, " ");

		if (n == len && !strncmp(at, value, n)) {
			*choice_at(p, key) = i;
			return 0;
		}
		at += n + (at[n] == ' ');
	}
	snprintf(why, why_len, "'%.80s' is none of: %s", value, key->choices);
	return -EINVAL;
}

static int set_trace(struct params *p, const char *value, char *why,
		     size_t why_len)
{
	struct trace trace;
	char *path;
	int ret;

	if (!strcmp(value, "none")) {
		drop_trace(p);
		return 0;
	}
	ret = trace_load(&trace, value, why, why_len);
	if (ret)
		return ret;
	path = strdup(value);
	if (!path) {
		trace_fini(&trace);
		return -ENOMEM;
	}
	drop_trace(p);
	p->trace = trace;
	p->trace_path = path;
	p->rate_mbps = 0;
	return 0;
}

static int set_delays(struct params *p, const char *value, char *why,
		      size_t why_len)
{
	struct delays delays;
	char *path;
	int ret;

	if (!strcmp(value, "none")) {
		drop_delays(p);
		return 0;
	}
	ret = delays_load(&delays, value, why, why_len);
	if (ret)
		return ret;
	path = strdup(value);
	if (!path) {
		delays_fini(&delays);
		return -ENOMEM;
	}
	drop_delays(p);
	p->delays = delays;
	p->delays_path = path;
	return 0;
}

static int set_key(struct params *p, const struct key *key, const char *value,
		   char *why, size_t why_len)
{
	switch (key->kind) {
	case NUMBER:
	case WHOLE:
	case OPTIONAL:
	case OPTIONAL_WHOLE:
		return set_number(p, key, value, why, why_len);
	case CHOICE:
		return set_choice(p, key, value, why, why_len);
	case LOSS:
		return loss_parse(&p->loss, value, why, why_len);
	case TRACE:
		return set_trace(p, value, why, why_len);
	case DELAYS:
		return set_delays(p, value, why, why_len);
	case GRANTS:
		return grants_parse(member(p, key), value, why, why_len);
	case GATE:
		return gate_parse(member(p, key), value, why, why_len);
	case REPORT:
		return report_parse(member(p, key), value, why, why_len);
	case INTERACTIVE:
		return interactive_parse(member(p, key), value, why, why_len);
	}
	return -EINVAL;
}

static int set_word(struct params *p, char *word, char *why, size_t why_len)
{
	char reason[256] = "out of memory";
	char *value = strchr(word, '=');
	int ret;

	if (!value) {
		snprintf(why, why_len, "%s: no '=VALUE' behind it", word);
		return -EINVAL;
	}
	*value++ = '\0';
	for (int i = 0; i < KEYS; i++) {
		if (strcmp(keys[i].name, word))
			continue;
		ret = set_key(p, &keys[i], value, reason, sizeof(reason));
		if (ret)
			snprintf(why, why_len, "%s: %s", word, reason);
		return ret;
	}
	snprintf(why, why_len, "%s: no such parameter", word);
	return -EINVAL;
}

/* The next word of *@words into @word; 0 at the end, -E2BIG. */
static int next_word(const char **words, char *word)
{
	const char *at = *words;
	int n = 0;

	while (isspace((unsigned char)*at))
		at++;
	while (*at && !isspace((unsigned char)*at)) {
		if (*at == '\\' && at[1])
			at++;
		if (n == WORD_MAX - 1)
			return -E2BIG;
		word[n++] = *at++;
	}
	word[n] = '\0';
	*words = at;
	return n;
}

int params_set(struct params *p, const char *words, char *why, size_t why_len)
{
	char word[WORD_MAX];
	int n;

	while ((n = next_word(&words, word)) > 0) {
		int ret = set_word(p, word, why, why_len);

		if (ret)
			return ret;
	}
	if (n < 0)
		snprintf(why, why_len, "%.20s...: longer than %d characters",
			 word, WORD_MAX - 1);
	return n;
}

/* --- all of it --- */

bool params_has_radio(const struct params *p)
{
	return p->radio.grants.every_ms > 0;
}

/* What a gate would let wait, in KB; @p has a radio. */
static double gate_kb(const struct params *p)
{
	const struct gate_spec *gate = &p->radio.gate;

	if (gate->kind == GATE_BYTES)
		return gate->limit / 1e3;
	if (gate->kind == GATE_DELAY)
		return gate->limit * p->rate_mbps / 8;
	return 0;
}

static int check_radio(const struct params *p, char *why, size_t why_len)
{
	const struct radio_spec *radio = &p->radio;

	if (p->rate_mbps == 0 && !p->trace.n)
		return reject(why, why_len, "grants: need a rate or a trace");
	if (p->aqm != AQM_TAIL)
		return reject(why, why_len,
			      "aqm: with grants the queue is the host's: host=codel");
	if (gate_kb(p) > radio->firmware_kb)
		return reject(why, why_len,
			      "gate: %.12g KB are more than firmware_kb=%.12g has room for",
			      gate_kb(p), radio->firmware_kb);
	return 0;
}

static int check(const struct params *p, char *why, size_t why_len)
{
	if (params_has_radio(p))
		return check_radio(p, why, why_len);
	if (p->radio.gate.kind != GATE_NONE)
		return reject(why, why_len,
			      "gate: needs a radio, such as grants=5ms,delay=8ms");
	if (p->host != HOST_FIFO)
		return reject(why, why_len,
			      "host: needs a radio, such as grants=5ms,delay=8ms");
	return 0;
}

int params_check(const struct params *p, char *why, size_t why_len)
{
	return check(p, why, why_len) < 0 ? -EINVAL : 0;
}

/* --- telling --- */


static void print_choice(FILE *out, const char *choices, int n)
{
	for (; n; n--)
		choices += strcspn(choices, " ") + 1;
	fprintf(out, "\"%.*s\"", (int)strcspn(choices, " "), choices);
}

/* What is told as it would be parsed. */
static void print_words(struct params *p, const struct key *key, FILE *out)
{
	fputc('"', out);
	if (key->kind == LOSS)
		loss_print(member(p, key), out);
	else if (key->kind == GRANTS)
		grants_print(member(p, key), out);
	else if (key->kind == GATE)
		gate_print(member(p, key), out);
	else if (key->kind == REPORT)
		report_print(member(p, key), out);
	else
		interactive_print(member(p, key), out);
	fputc('"', out);
}

static void print_value(struct params *p, const struct key *key, FILE *out)
{
	double v;

	switch (key->kind) {
	case NUMBER:
	case WHOLE:
	case OPTIONAL:
	case OPTIONAL_WHOLE:
		v = *number_at(p, key);
		if (is_optional(key) && v == none_of(key))
			fputs("null", out);
		else
			fprintf(out, "%.12g", v);
		break;
	case CHOICE:
		print_choice(out, key->choices, *choice_at(p, key));
		break;
	case TRACE:
		json_string(out, p->trace_path);
		break;
	case DELAYS:
		json_string(out, p->delays_path);
		break;
	default:
		print_words(p, key, out);
		break;
	}
}

void params_print(const struct params *p, FILE *out)
{
	for (int i = 0; i < KEYS; i++) {
		fprintf(out, "%s\"%s\":", i ? "," : "{", keys[i].name);
		print_value((struct params *)p, &keys[i], out);
	}
	fputc('}', out);
}

void params_help(FILE *out)
{
	for (int i = 0; i < KEYS; i++) {
		const struct key *key = &keys[i];

		fprintf(out, "  %-18s %s\n", key->name, key->help);
		if (key->choices)
			fprintf(out, "  %-18s one of: %s\n", "", key->choices);
	}
}
