/* SPDX-License-Identifier: MIT */
#include "path_policy.h"

#include <string.h>

#include "../conn/conn.h"
#include "../path/paths.h"
#include "../pipe/pipe.h"
#include "../settings/path_bits.h"

static bool policy_uses(const struct path_choice *choice,
			const struct path *path)
{
	return !choice->paths || !choice->policy->uses ||
	       choice->policy->uses(choice, path);
}

/* Is there one among @bits that works, and that the policy uses? */
static bool uses_one_of(const struct path_choice *choice, uint8_t bits)
{
	unsigned int i;

	for (i = 0; i < choice->paths->npaths; i++) {
		const struct path *path = &choice->paths->path[i];

		if (bits >> i & 1 && paths_works(choice->paths, path) &&
		    policy_uses(choice, path))
			return true;
	}
	return false;
}

bool path_choice_uses(const struct path_choice *choice, const struct path *path,
		      uint8_t bits)
{
	if (!path_bits_have(bits, path->number))
		return false;
	return policy_uses(choice, path) || (bits && !uses_one_of(choice, bits));
}

static bool is_among(const struct path *const *all, unsigned int n,
		     const struct path *path)
{
	unsigned int i = 0;

	while (i < n && all[i] != path)
		i++;
	return i < n;
}

const struct path *path_choice_pick(const struct path_choice *choice,
				    struct pipe *const *able, unsigned int n)
{
	const struct path *all[PATHS_MAX];
	unsigned int m = 0, i;

	if (!choice->paths || !choice->policy->pick)
		return NULL;
	for (i = 0; i < n; i++) {
		if (!is_among(all, m, able[i]->path))
			all[m++] = able[i]->path;
	}
	return choice->policy->pick(choice, all, m);
}

bool path_choice_takes(const struct path_choice *choice, const struct pipe *p,
		       const struct conn *c)
{
	if (!path_choice_uses(choice, p->path, c->paths))
		return false;
	return !choice->paths || !choice->policy->takes ||
	       choice->policy->takes(choice, p->path, c);
}

void path_choice_sent(struct path_choice *choice, const struct pipe *p,
		      struct conn *c, size_t bytes)
{
	if (choice->paths && choice->policy->sent)
		choice->policy->sent(choice, p->path, c, bytes);
}

static bool cuts(const struct path_choice *choice)
{
	return choice->paths && choice->policy->from_end;
}

static unsigned int paths_of(const struct path_choice *choice,
			     const struct conn *c)
{
	unsigned int n = 0, i;

	for (i = 0; i < choice->paths->npaths; i++)
		n += conn_may_use(c, i);
	return n;
}

bool path_choice_cuts(const struct path_choice *choice, const struct conn *c)
{
	return cuts(choice) && paths_of(choice, c) > 1;
}

bool path_choice_from_end(const struct path_choice *choice, const struct pipe *p,
			  const struct conn *c)
{
	return cuts(choice) && choice->policy->from_end(choice, p->path, c);
}

bool path_choice_repeats(const struct path_choice *choice, const struct path *path,
			 int64_t arrives_at)
{
	return !choice->policy->repeats ||
	       choice->policy->repeats(choice, path, arrives_at);
}

const struct path *path_nearest(const struct path_choice *choice,
				const struct path *const *able, unsigned int n)
{
	const struct path *best = able[0];
	unsigned int i;

	(void)choice;
	for (i = 1; i < n; i++) {
		if (path_base_ms(able[i]) < path_base_ms(best))
			best = able[i];
	}
	return best;
}

const struct path_policy *const path_policies[] = {
	&path_soonest, &path_minrtt, &path_rr, &path_ecf, &path_txdelay,
	&path_one, &path_split, &path_copies,
	&path_dems_b, &path_dems_s, &path_dems_f, NULL
};

const struct path_policy *path_policy_named(const char *name)
{
	const struct path_policy *const *p = path_policies;

	while (*p && strcmp((*p)->name, name))
		p++;
	return *p;
}
