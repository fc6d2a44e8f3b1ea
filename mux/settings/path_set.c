/* SPDX-License-Identifier: MIT */
#include "path_set.h"

#include <string.h>

#include "../base/reject.h"

int path_set_fit(struct path_set *set, unsigned int pipes, char *why,
		 size_t why_len)
{
	unsigned int sum = 0, backups = 0, i;

	for (i = 0; i < set->n; i++) {
		struct path_spec *p = &set->path[i];

		p->pipes = p->pipes ? p->pipes : pipes;
		sum += p->pipes;
		backups += p->backup;
	}
	if (sum > PIPES_MAX)
		return reject(why, why_len, "--path: the paths have %u pipes together, and a session has %d at most",
			      sum, PIPES_MAX);
	if (set->n && backups == set->n)
		return reject(why, why_len, "--path: all paths are backups, and there is none that they could stand in for");
	return 0;
}

unsigned int path_set_number(const struct path_set *set, const char *name,
			     size_t len)
{
	unsigned int i = 0;

	while (i < set->n && (strlen(set->path[i].name) != len ||
			      memcmp(set->path[i].name, name, len)))
		i++;
	return i;
}

unsigned int path_set_pipes(const struct path_set *set, unsigned int pipes)
{
	return set->n ? path_set_first(set, set->n) : pipes;
}

unsigned int path_set_of(const struct path_set *set, unsigned int index)
{
	unsigned int number = 0;

	while (number + 1 < set->n && index >= set->path[number].pipes)
		index -= set->path[number++].pipes;
	return number;
}

unsigned int path_set_first(const struct path_set *set, unsigned int number)
{
	unsigned int index = 0, i;

	for (i = 0; i < number && i < set->n; i++)
		index += set->path[i].pipes;
	return index;
}

static unsigned int backups_of(const struct path_set *set)
{
	unsigned int n = 0, i;

	for (i = 0; i < set->n; i++)
		n += set->path[i].backup;
	return n;
}

unsigned int path_set_turn(const struct path_set *set, unsigned int turn)
{
	unsigned int first = set->n - backups_of(set), i;
	bool backup = turn >= first;

	turn -= backup ? first : 0;
	for (i = 0; i < set->n; i++) {
		if (set->path[i].backup == backup && !turn--)
			return i;
	}
	return 0;
}

const char *path_set_name(const struct path_set *set, unsigned int number)
{
	return number < set->n ? set->path[number].name : NULL;
}
