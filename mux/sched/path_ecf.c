/* SPDX-License-Identifier: MIT */
/*
 * Earliest completion first. A far path takes the next bytes if they arrive there, behind what
 * it holds, no later than on the nearer paths behind all that remains: else the far path would
 * be what a connection waits for at its end. Completion is the application's last byte, so
 * delays are one way.
 *
 * What remains is what is in the connection's socket: an application that has more than the
 * network takes has written it. Where the socket is full nobody knows what waits behind it, and
 * every path is used. What others send before the last byte is the connections' policy to say: where
 * they take turns, as many bytes of each of them.
 */
#include "../conn/conn.h"
#include "../path/forecast.h"
#include "../path/paths.h"
#include "../pipe/pipe.h"
#include "path_policy.h"

static double message_of(const struct path *path, uint64_t left)
{
	double payload = (double)pipe_payload(path->pipes[0]);

	return (double)left < payload ? (double)left : payload;
}

static struct forecast forecast_by(const struct path_choice *choice,
				   const struct path *path, double trips)
{
	struct forecast f = forecast_of(path, choice->now);

	f.delay *= 2 * trips;
	return f;
}

bool path_is_in_time(const struct path_choice *choice, const struct path *path,
		     const struct conn *c, double trips, double late)
{
	const struct paths *paths = choice->paths;
	uint64_t left = conn_left(c), ahead = path_ahead(choice, c);
	struct forecast far;
	double at, nearer = 0;
	unsigned int i;

	if (ahead == UINT64_MAX)
		return true;
	far = forecast_by(choice, path, trips);
	at = forecast_arrival(&far, message_of(path, left)) - late;
	for (i = 0; i < paths->npaths; i++) {
		const struct path *other = &paths->path[i];
		struct forecast f;

		if (other == path || !other->npipes || !conn_may_use(c, i) ||
		    !paths_works(paths, other))
			continue;
		f = forecast_by(choice, other, trips);
		if (f.delay >= far.delay)
			continue;
		nearer += forecast_arrived(&f, at);
	}
	return nearer <= (double)ahead;
}

static bool takes(const struct path_choice *choice, const struct path *path,
		  const struct conn *c)
{
	return path_is_in_time(choice, path, c, 0.5, 0);
}

const struct path_policy path_ecf = {
	.name = "ecf",
	.summary = "earliest completion first: a far path only for what arrives there no later than the rest does on the nearer ones",
	.pick = path_nearest,
	.takes = takes,
	.by_message = true,
	.by_size = true,
};
