/* SPDX-License-Identifier: MIT */
#include "path_option.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/host.h"
#include "../mux/base/reject.h"

_Static_assert(DEVICE_NAME_MAX + 1 == IFNAMSIZ, "a device is named by the kernel");

enum { COST_MAX = UINT16_MAX, WORD_MAX = 64 };

/* What was given of one. */
struct given {
	struct path_spec spec;
	bool src, device, pipes, cost;
};

/* --- one word --- */

static int set_src(struct given *g, const char *value, char *why,
		   size_t why_len)
{
	socklen_t len;

	g->src = true;
	if (!addr_parse(value, NULL, 0, &g->spec.src, &len) &&
	    !addr_port(&g->spec.src) && !addr_is_any(&g->spec.src))
		return 0;
	return reject(why, why_len, "--path: %s: src='%s' is not the address of a host",
		      g->spec.name, value);
}

static int set_device(struct given *g, const char *value, char *why,
		      size_t why_len)
{
	size_t len = strlen(value);

	g->device = true;
	if (!len || len >= sizeof(g->spec.device))
		return reject(why, why_len, "--path: %s: dev='%s' is not the name of a device",
			      g->spec.name, value);
	memcpy(g->spec.device, value, len + 1);
	return 0;
}

/* -1: it is not a whole number from @least to @most. */
static long number(const char *text, long least, long most)
{
	long n = 0;

	if (!*text || strlen(text) > 5)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		n = 10 * n + (*text - '0');
	}
	return n >= least && n <= most ? n : -1;
}

static int set_pipes(struct given *g, const char *value, char *why,
		     size_t why_len)
{
	long n = number(value, 1, PIPES_MAX);

	g->pipes = true;
	if (n < 0)
		return reject(why, why_len, "--path: %s: pipes='%s' is not a whole number from 1 to %d",
			      g->spec.name, value, PIPES_MAX);
	g->spec.pipes = (unsigned int)n;
	return 0;
}

static int set_cost(struct given *g, const char *value, char *why,
		    size_t why_len)
{
	long n = number(value, 0, COST_MAX);

	g->cost = true;
	if (n < 0)
		return reject(why, why_len, "--path: %s: cost='%s' is not a whole number from 0 to %d",
			      g->spec.name, value, COST_MAX);
	g->spec.cost = (uint16_t)n;
	return 0;
}

/* What follows @key in @word, or NULL: it is another one. */
static const char *value_of(const char *word, const char *key)
{
	size_t len = strlen(key);

	return strncmp(word, key, len) ? NULL : word + len;
}

static int take_word(struct given *g, const char *word, char *why,
		     size_t why_len)
{
	const char *value;

	if (!strcmp(word, "backup") && !g->spec.backup) {
		g->spec.backup = true;
		return 0;
	}
	if ((value = value_of(word, "src=")) && !g->src)
		return set_src(g, value, why, why_len);
	if ((value = value_of(word, "dev=")) && !g->device)
		return set_device(g, value, why, why_len);
	if ((value = value_of(word, "pipes=")) && !g->pipes)
		return set_pipes(g, value, why, why_len);
	if ((value = value_of(word, "cost=")) && !g->cost)
		return set_cost(g, value, why, why_len);
	return reject(why, why_len, "--path: %s: '%s' is none of src=ADDR, dev=IFACE, pipes=N, cost=N and backup, each once",
		      g->spec.name, word);
}

/* --- one path --- */

/* The next word of @text, up to a comma, and what lies behind it. NULL: it is too long. */
static const char *next_word(const char *text, char word[WORD_MAX])
{
	size_t len = strcspn(text, ",");

	if (len >= WORD_MAX)
		return NULL;
	memcpy(word, text, len);
	word[len] = '\0';
	return text + len + (text[len] == ',');
}

static bool is_name(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return len && len <= PATH_NAME_MAX && !name[len];
}

static int take_name(const struct path_set *set, struct given *g,
		     const char **text, char *why, size_t why_len)
{
	char word[WORD_MAX];
	const char *behind = next_word(*text, word);

	if (!behind || !is_name(word))
		return reject(why, why_len, "--path: '%s' does not begin with a name: letters, digits, - and _, %d at most",
			      *text, PATH_NAME_MAX);
	if (path_set_number(set, word, strlen(word)) < set->n)
		return reject(why, why_len, "--path: %s is given twice", word);
	memcpy(g->spec.name, word, strlen(word) + 1);
	*text = behind;
	return 0;
}

int path_option_add(struct path_set *set, const char *text, char *why,
		    size_t why_len)
{
	struct given g = { .spec.pipes = 0 };
	char word[WORD_MAX];

	if (take_name(set, &g, &text, why, why_len))
		return -1;
	if (set->n == PATHS_MAX)
		return reject(why, why_len, "--path: %s: there are more than %d",
			      g.spec.name, PATHS_MAX);
	while (*text) {
		const char *behind = next_word(text, word);

		if (!behind)
			return reject(why, why_len, "--path: %s: '%s' is too long",
				      g.spec.name, text);
		if (take_word(&g, word, why, why_len))
			return -1;
		text = behind;
	}
	if (!g.src && !g.device)
		return reject(why, why_len, "--path: %s: it needs src=ADDR or dev=IFACE, by which it leaves this host",
			      g.spec.name);
	set->path[set->n++] = g.spec;
	return 0;
}

/* --- which are there --- */

/* 0, or -1 with what this host lacks of @p in @why. */
static int find(const struct path_spec *p, char *why, size_t why_len)
{
	char text[ADDR_TEXT];

	if (*p->device && !if_nametoindex(p->device))
		return reject(why, why_len, "%s: this host has no device %s",
			      p->name, p->device);
	if (p->src.ss_family && !host_owns(&p->src))
		return reject(why, why_len, "%s: %s is none of this host's addresses",
			      p->name, addr_host(&p->src, text));
	return 0;
}

unsigned int path_option_absent(const struct path_set *set,
				char text[ABSENT_TEXT])
{
	size_t used = 0;
	unsigned int i, n = 0;

	text[0] = '\0';
	for (i = 0; i < set->n; i++) {
		char one[ABSENT_ONE];

		if (find(&set->path[i], one, sizeof(one)))
			used += (size_t)snprintf(text + used,
						 ABSENT_TEXT - used, "%s%s",
						 n++ ? "; " : "", one);
	}
	return n;
}
