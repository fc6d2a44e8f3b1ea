/* SPDX-License-Identifier: MIT */
#include "choices.h"

#include <string.h>

#include "../base/reject.h"
#include "../path/aggregate.h"
#include "../sched/sched.h"
#include "../settings/settings.h"
#include "values.h"

enum { NAMES_LEN = 256 };	/* of a list of choices */

#define PERCENT_MAX 100.0

/* Lists the names that exist; @name(i) returns the i-th, NULL behind the last. */
static int reject_choice(char *why, size_t why_len, const char *option,
			 const char *value, const char *(*name)(int i))
{
	char names[NAMES_LEN] = "";
	int i;

	for (i = 0; name(i); i++) {
		strcat(names, i ? ", " : "");
		strcat(names, name(i));
	}
	return reject(why, why_len, "--%s: '%s' is not one of %s", option,
		      value, names);
}

static const char *pipe_policy_name(int i)
{
	return pipe_policies[i] ? pipe_policies[i]->name : NULL;
}

int choices_set_pipe_policy(struct settings *s, const char *value, char *why,
			    size_t why_len)
{
	s->pipe_policy = pipe_policy_named(value);
	if (s->pipe_policy)
		return 0;
	return reject_choice(why, why_len, "pipe-policy", value,
			     pipe_policy_name);
}

static const char *conn_policy_name(int i)
{
	return conn_policies[i] ? conn_policies[i]->name : NULL;
}

int choices_set_conn_policy(struct settings *s, const char *value, char *why,
			    size_t why_len)
{
	s->conn_policy = conn_policy_named(value);
	if (s->conn_policy)
		return 0;
	return reject_choice(why, why_len, "conn-policy", value,
			     conn_policy_name);
}

static const char *path_policy_name(int i)
{
	return path_policies[i] ? path_policies[i]->name : NULL;
}

/* What stands behind the colon; which path has that name is known to the program alone. */
static int take_argument(struct settings *s, const char *value,
			 const char *argument, char *why, size_t why_len)
{
	double percent;

	if (s->path_policy == &path_split) {
		if (value_number(argument, 0, PERCENT_MAX, &percent))
			return reject(why, why_len, "--path-policy: '%s': P is not a number from 0 to %g",
				      value, PERCENT_MAX);
		s->path_share = percent / PERCENT_MAX;
		return 0;
	}
	if (!*argument || strlen(argument) > PATH_NAME_MAX)
		return reject(why, why_len, "--path-policy: '%s': NAME is not the name of a path",
			      value);
	strcpy(s->path_name, argument);
	return 0;
}

static const struct path_policy *path_policy_of(const char *value)
{
	size_t len = strcspn(value, ":");
	char name[NAMES_LEN];

	if (len >= sizeof(name))
		return NULL;
	memcpy(name, value, len);
	name[len] = '\0';
	return path_policy_named(name);
}

int choices_set_path_policy(struct settings *s, const char *value, char *why,
			    size_t why_len)
{
	const struct path_policy *policy = path_policy_of(value);
	const char *colon = strchr(value, ':');

	if (!policy)
		return reject_choice(why, why_len, "path-policy", value,
				     path_policy_name);
	s->path_policy = policy;
	s->path_name[0] = '\0';
	if (!colon && policy->argument)
		return reject(why, why_len, "--path-policy: '%s' needs a %s behind it: %s:%s",
			      value, policy->argument, value, policy->argument);
	if (colon && !policy->argument)
		return reject(why, why_len, "--path-policy: '%s': nothing stands behind %s",
			      value, policy->name);
	return colon ? take_argument(s, value, colon + 1, why, why_len) : 0;
}

static const char *aggregate_name(int i)
{
	return aggregate_mode_name((enum aggregate_mode)i);
}

int choices_set_aggregate(struct settings *s, const char *value, char *why,
			  size_t why_len)
{
	int i;

	for (i = 0; aggregate_name(i); i++) {
		if (strcmp(aggregate_name(i), value))
			continue;
		s->aggregate = (enum aggregate_mode)i;
		return 0;
	}
	return reject_choice(why, why_len, "aggregate", value, aggregate_name);
}

static const char *sizes_name(int i)
{
	static const char *const names[] = { "off", "http", NULL };

	return names[i];
}

int choices_set_sizes(struct settings *s, const char *value, char *why,
		      size_t why_len)
{
	s->http_sizes = !strcmp(value, "http");
	if (s->http_sizes || !strcmp(value, "off"))
		return 0;
	return reject_choice(why, why_len, "sizes", value, sizes_name);
}

static const char *thin_name(int i)
{
	static const char *const names[] = {
		[THIN_COPY] = "copy", [THIN_SAME_PIPE] = "same-pipe",
		[THIN_OFF] = "off", NULL,
	};

	return names[i];
}

int choices_set_thin(struct settings *s, const char *value, char *why,
		     size_t why_len)
{
	int i;

	s->thin_given = true;
	for (i = 0; thin_name(i); i++) {
		if (strcmp(thin_name(i), value))
			continue;
		s->thin = (enum thin_mode)i;
		return 0;
	}
	return reject_choice(why, why_len, "thin", value, thin_name);
}

static const char *reinject_name(int i)
{
	return reinject_mode_name((enum reinject_mode)i);
}

int choices_set_reinject(struct settings *s, const char *value, char *why,
			 size_t why_len)
{
	int i;

	for (i = 0; reinject_name(i); i++) {
		if (strcmp(reinject_name(i), value))
			continue;
		s->reinject = (enum reinject_mode)i;
		return 0;
	}
	return reject_choice(why, why_len, "reinject", value, reinject_name);
}
