/* SPDX-License-Identifier: MIT */
#include "paths.h"

#include "../pipe/pipe.h"
#include "forecast.h"

/* No experiment lasts longer for another path's sake. */
#define TOGETHER NS_PER_SEC

void paths_add(struct paths *paths, unsigned int number, struct pipe *p)
{
	p->serial = ++paths->serials;
	spread_begins(&paths->spread, p);
	paths->path[number].number = (uint8_t)number;
	path_add(&paths->path[number], p);
	paths->pipes[paths->npipes++] = p;
	if (number >= paths->npaths)
		paths->npaths = number + 1;
}

void paths_remove(struct paths *paths, struct pipe *p)
{
	unsigned int i = 0;

	if (!p->path)
		return;
	path_remove(p->path, p);
	while (paths->pipes[i] != p)
		i++;
	paths->npipes--;
	for (; i < paths->npipes; i++)
		paths->pipes[i] = paths->pipes[i + 1];
}

unsigned int paths_number(const struct paths *paths, const struct pipe *p)
{
	return (unsigned int)(p->path - paths->path);
}

void paths_look(struct paths *paths, int64_t now)
{
	unsigned int i;

	for (i = 0; i < paths->npaths; i++)
		path_look(&paths->path[i], now);
}

void paths_unlimited(struct paths *paths, int64_t now)
{
	unsigned int i;

	for (i = 0; i < paths->npaths; i++)
		path_unlimited(&paths->path[i], now);
}

bool paths_are_spread(struct paths *paths, int64_t now)
{
	return spread_is_wide(&paths->spread, paths->pipes, paths->npipes, now);
}

int64_t paths_round_trip(const struct paths *paths)
{
	int64_t least = 0;
	unsigned int i;

	for (i = 0; i < paths->npaths; i++) {
		int64_t base = path_round_trip(&paths->path[i]);

		if (base && (!least || base < least))
			least = base;
	}
	return least;
}

static bool lives(const struct path *path)
{
	unsigned int i = 0;

	while (i < path->npipes && path->pipes[i]->relieved)
		i++;
	return i < path->npipes;
}

bool paths_stands_by(const struct paths *paths, const struct path *path)
{
	unsigned int i;

	if (path->off || !path->backup)
		return path->off;
	for (i = 0; i < paths->npaths; i++) {
		const struct path *other = &paths->path[i];

		if (!other->off && !other->backup && lives(other))
			return true;
	}
	return false;
}

bool paths_works(const struct paths *paths, const struct path *path)
{
	unsigned int i = 0;

	if (paths_stands_by(paths, path))
		return false;
	while (i < path->npipes &&
	       (path->pipes[i]->relieved || path->pipes[i]->doubtful ||
		path->pipes[i]->standby))
		i++;
	return i < path->npipes;
}

uint8_t paths_with(const struct paths *paths, bool (*is)(const struct pipe *p))
{
	uint8_t bits = 0;
	unsigned int i;

	for (i = 0; i < paths->npipes; i++) {
		if (is(paths->pipes[i]))
			bits |= (uint8_t)(1 << paths->pipes[i]->path->number);
	}
	return bits;
}

int64_t paths_farthest(const struct paths *paths)
{
	double farthest = 0;
	unsigned int i;

	for (i = 0; i < paths->npaths; i++) {
		const struct path *path = &paths->path[i];

		if (path->npipes && !paths_stands_by(paths, path) &&
		    path_trip_ms(path) > farthest)
			farthest = path_trip_ms(path);
	}
	return (int64_t)(farthest * NS_PER_MS);
}

/* An eighth, and what a pause of either machine may be. */
bool paths_is_nearer(const struct pipe *p, const struct pipe *other)
{
	return p->path != other->path &&
	       path_base_ms(p->path) * 1.125 + 1 < path_base_ms(other->path);
}

bool paths_send(struct paths *paths, struct pipe *p, size_t len, int64_t now,
		size_t *before)
{
	spread_gives(&paths->spread, p, len);
	if (paths->npaths > 1)
		forecast_gives(p->path, len, now);
	return path_sends(p->path, len, now, before);
}

/*
 * What another path holds is strangers' to the law, unless both hold less, or more, at the same
 * time: then the queue of a bottleneck that is in the way of both follows. Round trips may differ,
 * so nobody ends before the longest round does, if that is not for long.
 */
static void probe_together(struct paths *paths, const struct aggregate *first,
			   int64_t now)
{
	int64_t longest = aggregate_round_takes(first);
	unsigned int i;

	for (i = 0; i < paths->npaths; i++) {
		struct aggregate *a = &paths->path[i].aggregate;

		if (a != first && aggregate_joins(a, first, now) &&
		    aggregate_round_takes(a) > longest)
			longest = aggregate_round_takes(a);
	}
	if (longest > TOGETHER)
		longest = TOGETHER;
	for (i = 0; i < paths->npaths; i++)
		paths->path[i].aggregate.probe_until = now + longest;
}

void paths_acked(struct paths *paths, const struct pipe *p,
		 const struct ack_asked *what, int64_t at, int64_t now,
		 bool more)
{
	const struct aggregate *a = &p->path->aggregate;
	enum aggregate_probe before = a->probe;

	path_acked(p->path, p, what, at, now, more);
	if (!before && a->probe && paths->npaths > 1)
		probe_together(paths, a, at);
}
