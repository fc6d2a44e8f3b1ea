/* SPDX-License-Identifier: MIT */
#include "path_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../mux/base/addr.h"
#include "../mux/base/reject.h"
#include "../mux/base/user.h"

enum { WORD_MAX = 256, REASON_MAX = 384, DIGITS_MAX = 10 };

static const char blanks[] = " \t";

/* --- one criterion; -1 with what is wrong in @why --- */

static int set_port(struct path_rule *r, const char *value, char *why,
		    size_t why_len)
{
	char from[WORD_MAX];
	const char *dash = strchr(value, '-');
	size_t len = dash ? (size_t)(dash - value) : strlen(value);

	memcpy(from, value, len);
	from[len] = '\0';
	r->has_port = true;
	if (!port_parse(from, 1, &r->port) &&
	    !port_parse(dash ? dash + 1 : from, r->port, &r->port_end))
		return 0;
	return reject(why, why_len, "port '%s' is neither a port from 1 to 65535 nor two of them, as 8000-8100",
		      value);
}

/* The bits of @addr behind the first @prefix. */
static bool has_more(const uint8_t *addr, size_t len, unsigned int prefix)
{
	size_t i;

	for (i = prefix / 8; i < len; i++) {
		uint8_t mask = i == prefix / 8 ? 0xff >> prefix % 8 : 0xff;

		if (addr[i] & mask)
			return true;
	}
	return false;
}

static int set_network(struct path_rule *r, const char *value, char *why,
		       size_t why_len)
{
	r->has_network = true;
	if (cidr_parse(&r->network, value))
		return reject(why, why_len, "network '%s' is not an address with or without a prefix, as 192.0.2.0/24 or 2001:db8::/32",
			      value);
	if (has_more(r->network.addr, r->network.len, r->network.prefix))
		return reject(why, why_len, "network '%s' has bits behind its prefix",
			      value);
	return 0;
}

static int set_name(struct path_rule *r, const char *value, char *why,
		    size_t why_len)
{
	const char *host = strncmp(value, "*.", 2) ? value : value + 2;
	size_t len = strlen(value);

	r->has_name = true;
	if (!*host || len > HOST_MAX || strpbrk(host, "*/:[]@,") ||
	    host[strlen(host) - 1] == '.')
		return reject(why, why_len, "name '%s' is neither a name nor *. and the name that others end in",
			      value);
	memcpy(r->name, value, len + 1);
	return 0;
}

static int set_user(struct path_rule *r, const char *value, char *why,
		    size_t why_len)
{
	size_t len = strlen(value);
	struct user user;

	r->has_user = true;
	if (len < DIGITS_MAX && strspn(value, "0123456789") == len) {
		r->user = (uid_t)strtoul(value, NULL, 10);
		return 0;
	}
	if (user_find(&user, value))
		return reject(why, why_len, "user '%s' is not known on this host",
			      value);
	r->user = user.uid;
	return 0;
}

static int set_program(struct path_rule *r, const char *value, char *why,
		       size_t why_len)
{
	size_t len = strlen(value);

	(void)why;
	(void)why_len;
	_Static_assert(WORD_MAX <= PROGRAM_MAX + 1, "a word is no longer");
	r->has_program = true;
	memcpy(r->program, value, len + 1);
	return 0;
}

static int set_paths(struct path_rule *r, const char *value, char *why,
		     size_t why_len)
{
	size_t len = strlen(value);

	if (len > NAMES_MAX || value[0] == ',' || value[len - 1] == ',' ||
	    strstr(value, ",,"))
		return reject(why, why_len, "paths '%s' is not a list of names of paths, as wifi,lte",
			      value);
	memcpy(r->path_names, value, len + 1);
	return 0;
}

/* --- one rule --- */

static const struct {
	const char *word;
	int (*set)(struct path_rule *r, const char *value, char *why,
		   size_t why_len);
} criteria[] = {
	{ "port", set_port },
	{ "network", set_network },
	{ "name", set_name },
	{ "user", set_user },
	{ "program", set_program },
	{ "paths", set_paths },
};

enum { CRITERIA = sizeof(criteria) / sizeof(*criteria) };

/* The next word of @text, or "" at its end. NULL: it is too long. Else what lies behind it. */
static const char *next_word(const char *text, char word[WORD_MAX])
{
	size_t len;

	text += strspn(text, blanks);
	len = strcspn(text, blanks);
	if (len >= WORD_MAX)
		return NULL;
	memcpy(word, text, len);
	word[len] = '\0';
	return text + len;
}

static unsigned int criterion_named(const char *word)
{
	unsigned int i = 0;

	while (i < CRITERIA && strcmp(criteria[i].word, word))
		i++;
	return i;
}

/* Takes a word and its value off @text. NULL with what is wrong in @why. */
static const char *take_one(struct path_rule *r, const char *text,
			    unsigned int *seen, char *why, size_t why_len)
{
	char word[WORD_MAX], value[WORD_MAX];
	const char *behind = next_word(text, word);
	unsigned int i = behind ? criterion_named(word) : CRITERIA;

	behind = behind ? next_word(behind, value) : NULL;
	if (!behind)
		reject(why, why_len, "a word of it is too long");
	else if (i == CRITERIA)
		reject(why, why_len, "'%s' is none of port, network, name, user, program and paths",
		       word);
	else if (*seen & 1u << i)
		reject(why, why_len, "%s is given twice", word);
	else if (!*value)
		reject(why, why_len, "nothing follows %s", word);
	else if (!criteria[i].set(r, value, why, why_len)) {
		*seen |= 1u << i;
		return behind;
	}
	return NULL;
}

static int parse(struct path_rule *r, const char *text, char *why,
		 size_t why_len)
{
	unsigned int seen = 0;

	memset(r, 0, sizeof(*r));
	while (text[strspn(text, blanks)]) {
		text = take_one(r, text, &seen, why, why_len);
		if (!text)
			return -1;
	}
	if (!*r->path_names)
		return reject(why, why_len, "it names no path: paths NAME[,NAME...]");
	return 0;
}

int path_rules_add(struct path_rules *rules, const char *text, char *why,
		   size_t why_len)
{
	struct path_rule *more = realloc(rules->rule,
					 (rules->n + 1) * sizeof(*more));
	char reason[REASON_MAX];

	if (!more)
		return reject(why, why_len, "--rule: no memory is left");
	rules->rule = more;
	if (parse(&more[rules->n], text, reason, sizeof(reason)))
		return reject(why, why_len, "--rule: '%s': %s", text, reason);
	rules->n++;
	return 0;
}

void path_rules_fini(struct path_rules *rules)
{
	free(rules->rule);
	*rules = (struct path_rules){ NULL, 0 };
}

/* --- the paths that it names --- */

static int fit(struct path_rule *r, const struct path_set *set, char *why,
	       size_t why_len)
{
	const char *name = r->path_names;
	bool backups = true;

	for (r->paths = 0; *name; name += *name == ',') {
		size_t len = strcspn(name, ",");
		unsigned int number = path_set_number(set, name, len);

		if (number == set->n)
			return reject(why, why_len, "--rule: paths %s: there is no path %.*s (--path)",
				      r->path_names, (int)len, name);
		if (r->paths & 1u << number)
			return reject(why, why_len, "--rule: paths %s: %.*s is given twice",
				      r->path_names, (int)len, name);
		r->paths |= (uint8_t)(1u << number);
		backups &= set->path[number].backup;
		name += len;
	}
	return backups ? reject(why, why_len, "--rule: paths %s: all of them are backups, which carry nothing while another path works",
				r->path_names) : 0;
}

int path_rules_fit(struct path_rules *rules, const struct path_set *set,
		   char *why, size_t why_len)
{
	unsigned int i;

	for (i = 0; i < rules->n; i++) {
		if (fit(&rules->rule[i], set, why, why_len))
			return -1;
	}
	return 0;
}

/* --- which one a connection meets --- */

static bool covers(const struct path_rule *r, const struct destination *to)
{
	return (to->kind == DESTINATION_IPV4 || to->kind == DESTINATION_IPV6) &&
	       cidr_covers(&r->network, to->bytes, to->len);
}

static bool is_named(const struct path_rule *r, const char *name)
{
	const char *end = r->name;
	size_t len, end_len;

	if (!name)
		return false;
	len = strlen(name);
	len -= len && name[len - 1] == '.';	/* the root's, if it is written */
	if (*end == '*')
		end++;
	end_len = strlen(end);
	if (*r->name == '*' ? len <= end_len : len != end_len)
		return false;
	return !strncasecmp(name + len - end_len, end, end_len);
}

/* What costs most to know is asked last. */
static bool is_met(const struct path_rule *r, const struct path_facts *facts)
{
	const struct destination *to = facts->to;

	if (r->has_port && (to->port < r->port || to->port > r->port_end))
		return false;
	if (r->has_network && !covers(r, to))
		return false;
	if (r->has_name && !is_named(r, facts->name))
		return false;
	if (r->has_user && !facts->is_of_user(facts->client, r->user))
		return false;
	return !r->has_program ||
	       facts->is_of_program(facts->client, r->program);
}

uint8_t path_rules_paths(const struct path_rules *rules,
			 const struct path_facts *facts)
{
	unsigned int i;

	for (i = 0; i < rules->n; i++) {
		if (is_met(&rules->rule[i], facts))
			return rules->rule[i].paths;
	}
	return 0;
}

bool path_rules_ask_names(const struct path_rules *rules)
{
	unsigned int i = 0;

	while (i < rules->n && !rules->rule[i].has_name)
		i++;
	return i < rules->n;
}

bool path_rules_ask_programs(const struct path_rules *rules)
{
	unsigned int i = 0;

	while (i < rules->n && !rules->rule[i].has_program)
		i++;
	return i < rules->n;
}

bool path_rules_ask_users(const struct path_rules *rules)
{
	unsigned int i = 0;

	while (i < rules->n && !rules->rule[i].has_user)
		i++;
	return i < rules->n || path_rules_ask_programs(rules);
}
