/* SPDX-License-Identifier: MIT */
#include "options_paths.h"

#include <string.h>

#include "../mux/base/reject.h"
#include "../mux/sched/path_policy.h"
#include "../mux/sched/sched.h"
#include "options.h"
#include "path_option.h"

/* It is for several paths; what it names is one of them. */
static int take_policy(struct options *o, char *why, size_t why_len)
{
	const struct path_set *set = &o->settings.paths;
	struct settings *s = &o->settings;

	if (s->path_policy != path_policies[0] && set->n < 2)
		return reject(why, why_len, "--path-policy: %s chooses between paths, and there are not two of them (--path)",
			      s->path_policy->name);
	if (s->path_policy->paths && set->n != s->path_policy->paths)
		return reject(why, why_len, "--path-policy: %s is for %u paths, and there are %u of them (--path)",
			      s->path_policy->name, s->path_policy->paths, set->n);
	if (!*s->path_name)
		return 0;
	s->path_number = path_set_number(set, s->path_name, strlen(s->path_name));
	return s->path_number < set->n ? 0 :
		reject(why, why_len, "--path-policy: one:%s: there is no path of that name (--path)",
		      s->path_name);
}

static int take_rules(struct options *o, char *why, size_t why_len)
{
	if (o->path_rules.n && o->settings.pipe_policy == &sched_fixed)
		return reject(why, why_len, "--rule: it does not go with --pipe-policy fixed, which may have a connection stay on another path");
	return path_rules_fit(&o->path_rules, &o->settings.paths, why, why_len);
}

/* A device or an address may come later; at boot those of all paths may. */
static void note_absent(struct options *o)
{
	if (!o->running)
		o->nabsent = path_option_absent(&o->settings.paths, o->absent);
}

int options_take_paths(struct options *o, char *why, size_t why_len)
{
	note_absent(o);
	return take_policy(o, why, why_len) || take_rules(o, why, why_len) ?
	       -1 : 0;
}

int options_check_paths(const struct options *o, char *why, size_t why_len)
{
	const struct transport_set *kinds = &o->settings.transports;
	const struct path_set *set = &o->settings.paths;
	unsigned int i;

	if (set->n > 1 && o->dial.extend == EXTEND_NEVER)
		return reject(why, why_len, "--path: several of them need " UNSPOKEN_EXTENSION "; in the baseline rp tells pipes by their address");
	for (i = 0; i < set->n; i++) {
		if (kinds->n > 1 && set->path[i].pipes != o->dial.each)
			return reject(why, why_len, "--path: %s: pipes=%u does not go with --pipe, whose numbers add up to PIPES, %u",
				      set->path[i].name, set->path[i].pipes,
				      o->dial.each);
	}
	return 0;
}
