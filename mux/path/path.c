/* SPDX-License-Identifier: MIT */
#include "path.h"

#include "../pipe/pipe.h"

void path_add(struct path *path, struct pipe *p)
{
	p->path = path;
	p->passing = &path->passing;
	path->pipes[path->npipes++] = p;
}

void path_remove(struct path *path, struct pipe *p)
{
	unsigned int i = 0;

	while (path->pipes[i] != p)
		i++;
	p->path = NULL;
	p->passing = NULL;
	path->delivered_before += pipe_arrived(p);
	path->npipes--;
	for (; i < path->npipes; i++)
		path->pipes[i] = path->pipes[i + 1];
}

size_t path_held(const struct path *path)
{
	size_t sum = 0;
	unsigned int i;

	for (i = 0; i < path->npipes; i++)
		sum += pipe_held(path->pipes[i]);
	return sum;
}

/* DSWA goes by all windows, and by the round trips of pipes in use. */
static void look_at_windows(struct path *path)
{
	double cwnd = 0, rtt = 0, least = 0;
	unsigned int i, n = 0;

	for (i = 0; i < path->npipes; i++) {
		const struct pipe_info *info = &path->pipes[i]->info;

		cwnd += (double)info->cwnd * info->mss;
		if (!least || info->rttmin_ms < least)
			least = info->rttmin_ms;
		if (!info->in_flight)
			continue;
		rtt += info->rtt_ms;
		n++;
	}
	if (n)
		aggregate_windows(&path->aggregate, cwnd, least / 1e3,
				  rtt / n / 1e3, path->pipes[0]->info.mss);
}

void path_look(struct path *path, int64_t now)
{
	unsigned int i;

	for (i = 0; i < path->npipes; i++)
		pipe_look(path->pipes[i], now);
	path->looked_at = now;
	if (path->aggregate.mode == AGGREGATE_DSWA)
		look_at_windows(path);
}

/* At first its handshake's. */
double path_base_ms(const struct path *path)
{
	double least = path->pipes[0]->info.rttmin_ms;
	unsigned int i;

	for (i = 1; i < path->npipes; i++) {
		if (path->pipes[i]->info.rttmin_ms < least)
			least = path->pipes[i]->info.rttmin_ms;
	}
	return least;
}

double path_trip_ms(const struct path *path)
{
	double least = path->pipes[0]->info.rtt_ms;
	unsigned int i;

	for (i = 1; i < path->npipes; i++) {
		if (path->pipes[i]->info.rtt_ms < least)
			least = path->pipes[i]->info.rtt_ms;
	}
	return least;
}

static int64_t least_round_trip(const struct path *path)
{
	return (int64_t)(path_base_ms(path) * NS_PER_MS);
}

int64_t path_round_trip(const struct path *path)
{
	int64_t base = aggregate_base(&path->aggregate);

	return base || !path->npipes ? base : least_round_trip(path);
}

/*
 * The mean of the least that each pipe saw. A handshake that was sent again tells
 * nothing: the kernel takes it for a second longer, or says 2^32 us.
 */
static int64_t mean_round_trip(const struct path *path)
{
	double sum = 0;
	unsigned int i, n = 0;

	for (i = 0; i < path->npipes; i++) {
		if (path->pipes[i]->info.retransmits)
			continue;
		sum += path->pipes[i]->info.rttmin_ms;
		n++;
	}
	return n ? (int64_t)(sum / n * NS_PER_MS) : 0;
}

size_t path_room(struct path *path, int64_t now)
{
	size_t room;

	if (path->aggregate.after_idle)
		aggregate_expect(&path->aggregate, least_round_trip(path),
				 mean_round_trip(path));
	if (path->aggregate.limit == AGGREGATE_NONE)
		return SIZE_MAX;
	room = aggregate_room(&path->aggregate, path_held(path), now);
	if (!room)
		aggregate_limited(&path->aggregate, now);
	return room;
}

size_t path_room_ahead(struct path *path, int64_t now)
{
	size_t limit = path->aggregate.limit, held;

	if (limit == AGGREGATE_NONE)
		return SIZE_MAX;
	limit += limit / 4;
	held = path_held(path);
	return held < limit ? limit - held : path_room(path, now);
}

void path_unlimited(struct path *path, int64_t now)
{
	aggregate_unlimited(&path->aggregate, now);
}

bool path_sends(struct path *path, size_t len, int64_t now, size_t *before)
{
	path->written += len;
	*before = path_held(path);
	return aggregate_asks(&path->aggregate, path->written, *before, now);
}

size_t path_in_flight(const struct path *path)
{
	size_t sum = 0;
	unsigned int i;

	for (i = 0; i < path->npipes; i++)
		sum += path->pipes[i]->info.in_flight;
	return sum;
}

/* By what was last known of the pipes. */
static uint64_t delivered(const struct path *path)
{
	uint64_t sum = path->delivered_before;
	unsigned int i;

	for (i = 0; i < path->npipes; i++)
		sum += pipe_arrived(path->pipes[i]);
	return sum;
}

/*
 * Until the limit is known a path's first windows leave at once. How long each of their segments
 * takes is their own queue, and tells nothing of what delays deviate by.
 */
static bool is_starting(const struct path *path)
{
	return path->aggregate.mode == AGGREGATE_DELAY &&
	       path->aggregate.state == AGGREGATE_FREE;
}

/*
 * What was sent again, or waited behind that, says nothing of the delay. What waited in its socket
 * met what was in flight when it left. What is in flight by the time of its acknowledgement may be
 * nothing: the object ends.
 */
static void note_delay(struct path *path, const struct ack_asked *what,
		       const struct aggregate_ack *ack)
{
	double took = (double)(ack->acked_at - ack->left_at) / 1e9;
	double back = path_base_ms(path) / 2e3;

	if (is_starting(path) || ack->left_at < path->steady_at)
		return;
	if (!ack->again && took > back)
		variation_sample(&path->variation, what->schedule ?
				 what->in_flight : what->held, took - back);
}

/* The limit learns from it. */
static void tell_limit(struct path *path, const struct aggregate_ack *ack)
{
	bool starting = is_starting(path);

	aggregate_acked(&path->aggregate, ack);
	if (starting && !is_starting(path))
		path->steady_at = ack->acked_at;
}

void path_acked(struct path *path, const struct pipe *p,
		const struct ack_asked *what, int64_t at, int64_t now,
		bool more)
{
	struct aggregate_ack ack = {
		.sent_at = what->sent_at, .left_at = what->left_at,
		.acked_at = at,
		.held = what->held, .len = what->len,
		.mss = p->info.mss, .more = more,
		.least = least_round_trip(path),
		.again = what->behind || p->info.retransmits != what->again,
		.datagrams = passing_datagrams(&path->passing, now),
	};

	if (what->schedule || path->aggregate.state != AGGREGATE_BOUND)
		path_look(path, now);
	/*
	 * What waited in its socket was written with other bytes before it than
	 * were in flight when it left: what is in flight now comes nearer.
	 */
	if (what->schedule)
		ack.held = path_in_flight(path);
	ack.delivered = delivered(path);
	ack.counted_at = path->looked_at;
	if (!what->clean)
		return;
	note_delay(path, what, &ack);
	tell_limit(path, &ack);
}
