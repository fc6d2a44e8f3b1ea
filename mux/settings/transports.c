/* SPDX-License-Identifier: MIT */
#include "transports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/reject.h"

static const char *const names[TRANSPORTS] = {
	[TRANSPORT_TCP] = "tcp",
	[TRANSPORT_MPTCP] = "mptcp",
	[TRANSPORT_SCTP] = "sctp",
};

const char *transport_name(enum transport t)
{
	return names[t];
}

/* --- a set from text --- */

/* The one whose name is the first @len characters of @text, or TRANSPORTS. */
static unsigned int named(const char *text, size_t len)
{
	unsigned int i;

	for (i = 0; i < TRANSPORTS; i++) {
		if (strlen(names[i]) == len &&
		    !strncmp(names[i], text, len))
			break;
	}
	return i;
}

/* ":4" and what follows it in @end; 0 pipes are none. */
static int parse_count(const char *text, unsigned int *count, const char **end)
{
	size_t digits;

	*end = text;
	*count = 0;
	if (*text != ':')
		return 0;
	digits = strspn(++text, "0123456789");
	if (!digits || digits > 4)
		return -1;
	*count = (unsigned int)strtoul(text, NULL, 10);
	*end = text + digits;
	return *count ? 0 : -1;
}

static int parse_one(struct transport_set *set, const char *text,
		     const char **end, char *why, size_t why_len)
{
	size_t len = strcspn(text, ":,");
	unsigned int t = named(text, len);
	unsigned int count;

	if (t == TRANSPORTS)
		return reject(why, why_len, "'%.*s' is not one of tcp, mptcp, sctp",
			      (int)len, text);
	if (transport_set_has(set, (enum transport)t))
		return reject(why, why_len, "%s is named twice",
			      names[t]);
	if (parse_count(text + len, &count, end) || (**end && **end != ','))
		return reject(why, why_len, "'%.*s' is not a name and a number of pipes, such as %s:4",
			      (int)strcspn(text, ","), text,
			      names[t]);
	set->kind[set->n] = (enum transport)t;
	set->count[set->n++] = count;
	return 0;
}

int transport_set_parse(struct transport_set *set, const char *text, char *why,
			size_t why_len)
{
	struct transport_set new = { .n = 0 };

	for (;;) {
		if (parse_one(&new, text, &text, why, why_len))
			return -1;
		if (!*text)
			break;
		text++;
	}
	*set = new;
	return 0;
}

int transport_set_fit(struct transport_set *set, unsigned int pipes, bool loose,
		      char *why, size_t why_len)
{
	unsigned int sum = 0, missing = 0, i;

	for (i = 0; i < set->n; i++) {
		sum += set->count[i];
		missing += !set->count[i];
	}
	if (missing && (loose ? sum < pipes : set->n == 1)) {
		if (set->n == 1)
			set->count[0] = pipes;
		return 0;
	}
	if (missing)
		return reject(why, why_len, "--pipe: how many of each? Their numbers are to add up to PIPES, %u (such as tcp:4,sctp:4 for 8)",
			      pipes);
	if (sum != pipes)
		return reject(why, why_len, "--pipe: the counts add up to %u, and PIPES is %u",
			      sum, pipes);
	return 0;
}

/* --- asking a set --- */

bool transport_set_has(const struct transport_set *set, enum transport t)
{
	unsigned int i;

	for (i = 0; i < set->n; i++) {
		if (set->kind[i] == t)
			return true;
	}
	return false;
}

bool transport_set_is(const struct transport_set *set, enum transport t)
{
	return set->n == 1 && set->kind[0] == t;
}

enum transport transport_set_of(const struct transport_set *set,
				unsigned int i)
{
	unsigned int at = 0;

	while (at + 1 < set->n && i >= set->count[at])
		i -= set->count[at++];
	return set->kind[at];
}

const char *transport_set_text(const struct transport_set *set,
			       char text[TRANSPORT_SET_TEXT])
{
	size_t used = 0;
	unsigned int i;

	for (i = 0; i < set->n; i++) {
		used += (size_t)snprintf(text + used,
					 TRANSPORT_SET_TEXT - used, "%s%s",
					 i ? "," : "",
					 names[set->kind[i]]);
		if (set->n > 1 && set->count[i])
			used += (size_t)snprintf(text + used,
						 TRANSPORT_SET_TEXT - used,
						 ":%u", set->count[i]);
	}
	return text;
}
