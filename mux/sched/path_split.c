/* SPDX-License-Identifier: MIT */
/*
 * A part of each connection's bytes goes over the first path, all else over the others.
 *
 * The parts are of what was sent and what waits in the connection's socket, and each goes as
 * fast as its own paths allow. Where that socket is full nobody knows the whole: then the two
 * keep step with each other, and message by message each has its part of what was sent.
 */
#include "../conn/conn.h"
#include "../path/paths.h"
#include "path_policy.h"

/* For @c: the first path, or any other one. */
static bool works(const struct path_choice *choice, const struct conn *c,
		  bool first)
{
	const struct paths *paths = choice->paths;
	unsigned int end = first ? 1 : paths->npaths, i;

	for (i = first ? 0 : 1; i < end; i++) {
		if (conn_may_use(c, i) && paths_works(paths, &paths->path[i]))
			return true;
	}
	return false;
}

/* That are known to come. One at least, unless there are none any more. */
static uint64_t bytes_left(const struct conn *c)
{
	uint64_t left = conn_left(c);

	return left == UINT64_MAX || (!left && !c->ends) ? 1 : left;
}

static bool takes(const struct path_choice *choice, const struct path *path,
		  const struct conn *c)
{
	bool first = path == &choice->paths->path[0];
	uint64_t left = bytes_left(c);
	double all = (double)c->tx_bytes + (double)left;
	double part = choice->share * all;
	uint64_t sent_first = conn_outlook(c)->first_bytes;

	if (!works(choice, c, !first) || !left)
		return true;
	return first ? (double)sent_first < part :
		(double)(c->tx_bytes - sent_first) < all - part;
}

static void sent(struct path_choice *choice, const struct path *path,
		 struct conn *c, size_t bytes)
{
	struct outlook *o = path == &choice->paths->path[0] ?
		conn_outlook_new(c) : NULL;

	if (o)
		o->first_bytes += bytes;
}

const struct path_policy path_split = {
	.name = "split",
	.argument = "P",
	.summary = "P percent of each connection's bytes over the first path",
	.takes = takes,
	.sent = sent,
	.by_message = true,
	.by_size = true,
};
