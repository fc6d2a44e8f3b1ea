/* SPDX-License-Identifier: MIT */
#include "path_play.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/path/forecast.h"

enum { BEGIN_S = 1, IDS = 1 };

static void init_lane(struct play *play, unsigned int i,
		      const struct play_mile *mile)
{
	struct play_lane *lane = &play->lane[i];
	struct pipe *p = &lane->pipe;
	struct aggregate *a;

	lane->mile = *mile;
	p->settings = &play->settings;
	p->index = i;
	p->info.mss = PLAY_MESSAGE + WIRE_HEADER;
	p->allowance = 4 * p->info.mss;
	p->info.rate = mile->rate;
	p->info.rtt_ms = p->info.rttmin_ms = 2e3 * mile->delay;
	/* What fills the path, and the one that is being sent. */
	p->info.cwnd = 1 + (uint32_t)ceil(mile->rate * 2 * mile->delay /
					  PLAY_MESSAGE);
	paths_add(&play->paths, i, p);
	a = &play->paths.path[i].aggregate;
	aggregate_init(a, AGGREGATE_DSWA, 2, play->now);
	a->limit = (size_t)p->info.cwnd * PLAY_MESSAGE;
}

void play_read_miles(struct play_mile *miles, unsigned int n, char **words)
{
	for (unsigned int i = 0; i < n; i++)
		miles[i] = (struct play_mile){ atof(words[2 * i]),
					       atof(words[2 * i + 1]) };
}

void play_init(struct play *play, const struct path_policy *policy,
	       const struct play_mile *miles, unsigned int n)
{
	unsigned int i;

	memset(play, 0, sizeof(*play));
	play->now = BEGIN_S * NS_PER_SEC;
	play->settings.late = true;
	sched_init(&play->s, &sched_drr, &sched_soonest, n, 1);
	sched_set_paths(&play->s, policy, 0, 0);
	play->nlanes = n;
	for (i = 0; i < n; i++)
		init_lane(play, i, &miles[i]);
	for (i = 0; i < PLAY_CONNS; i++) {
		play->conn[i].id = (uint16_t)(IDS + i);
		list_init(&play->conn[i].turn);
		list_init(&play->conn[i].ahead);
		play->outlook[i] = outlook_none;
		play->conn[i].outlook = &play->outlook[i];
	}
}

void play_conns(struct play *play, const struct conn_policy *policy)
{
	const struct path_policy *paths = play->s.path.policy;

	sched_init(&play->s, policy, &sched_soonest, play->nlanes, 1);
	sched_set_paths(&play->s, paths, 0, 0);
}

void play_object(struct play *play, unsigned int conn, uint64_t bytes,
		 bool known)
{
	struct conn *c = &play->conn[conn];

	c->tx_bytes = c->outlook->first_bytes = 0;
	c->outlook->ready_to = known ? bytes : 0;
	c->ends = known;
	play->size[conn] = bytes;
	c->ready = true;
	sched_ready(&play->s, c, play->now);
}

static int64_t ns(double seconds)
{
	return (int64_t)llround(seconds * 1e9);
}

void play_later(struct play *play, unsigned int conn, uint64_t bytes,
		double seconds)
{
	play->size[conn] = bytes;
	play->due[conn] = play->now + ns(seconds);
}

static void be_busy(struct play *play)
{
	for (unsigned int i = 0; play->one_by_one && i < play->nlanes; i++) {
		struct pipe *p = &play->lane[i].pipe;

		play->paths.path[i].aggregate.limit = 1 << 30;
		p->info.unsent = play->lane[i].free_at > play->now ?
				 p->allowance : 0;
	}
}

static bool may_go(const struct play *play, const struct play_sent *sent,
		   unsigned int lane)
{
	return !(sent->lanes & (1u << lane)) && sent->acked_at > play->now;
}

/* As the engine finds it: the oldest, or the newest. */
static struct play_sent *twin_for(struct play *play, unsigned int lane)
{
	enum path_twice twice = play->s.path.policy->twice;
	unsigned int n = play->nsent, i;

	for (i = 0; i < n && twice != PATH_TWICE_NEVER; i++) {
		struct play_sent *sent = &play->sent[
			twice == PATH_TWICE_ALL ? i : n - 1 - i];

		if (may_go(play, sent, lane))
			return sent;
	}
	return NULL;
}

struct next play_next(struct play *play)
{
	struct view view = {
		.sched = &play->s, .paths = &play->paths, .now = play->now,
		.scatters = true,
	};
	unsigned int i;

	be_busy(play);
	for (i = 0; i < play->nlanes; i++) {
		const struct play_sent *sent = twin_for(play, i);

		view.twins |= sent != NULL;
		view.twin[i].there = sent != NULL;
		view.twin[i].ahead = play->s.path.policy->twice == PATH_TWICE_ALL;
		view.twin[i].arrives_at = sent ? sent->forecast : 0;
	}
	return sched_next(&view);
}

static void fly(struct play *play, struct play_lane *lane, size_t bytes)
{
	struct play_flight *flight;

	if (lane->free_at < play->now)
		lane->free_at = play->now;
	lane->free_at += ns((double)bytes / lane->mile.rate);
	lane->arrived_at = lane->free_at + ns(lane->mile.delay);
	lane->pipe.info.in_flight += bytes;
	lane->pipe.tx_bytes += bytes;
	assert_in_range(lane->n, 0, PLAY_FLIGHTS - 1);
	flight = &lane->flight[(lane->first + lane->n++) % PLAY_FLIGHTS];
	flight->acked_at = lane->free_at + ns(2 * lane->mile.delay);
	flight->bytes = bytes;
}

static unsigned int bit_of(const struct play_lane *lane)
{
	return 1u << lane->pipe.index;
}

static void note_sent(struct play *play, struct play_lane *lane,
		      unsigned int conn, size_t bytes)
{
	lane->bytes += bytes;
	assert_in_range(play->nsent, 0, PLAY_SENT - 1);
	play->sent[play->nsent++] = (struct play_sent){
		.bytes = bytes, .conn = conn, .lanes = bit_of(lane),
		.forecast = path_arrives_at(lane->pipe.path, play->now, 0),
		.acked_at = lane->arrived_at + ns(lane->mile.delay),
		.arrived_at = lane->arrived_at,
	};
}

static void send_twin(struct play *play, struct play_lane *lane)
{
	struct play_sent *sent = twin_for(play, lane->pipe.index);
	size_t before;

	paths_send(&play->paths, &lane->pipe, sent->bytes, play->now, &before);
	fly(play, lane, sent->bytes);
	sent->lanes |= bit_of(lane);
	play->again += sent->bytes;
	if (lane->arrived_at < sent->arrived_at)
		sent->arrived_at = lane->arrived_at;
	if (lane->arrived_at + ns(lane->mile.delay) < sent->acked_at)
		sent->acked_at = lane->arrived_at + ns(lane->mile.delay);
}

static void send_new(struct play *play, const struct next *next)
{
	struct play_lane *lane = container_of(next->pipe, struct play_lane, pipe);
	struct conn *c = next->conn;
	unsigned int conn = (unsigned int)(c - play->conn);
	uint64_t left = play->size[conn] - c->tx_bytes;
	size_t bytes = next->bytes < left ? next->bytes : (size_t)left;
	size_t part, before, sent;

	for (sent = 0; sent < bytes; sent += part) {
		part = bytes - sent < PLAY_MESSAGE ? bytes - sent : PLAY_MESSAGE;
		paths_send(&play->paths, next->pipe, part, play->now, &before);
		fly(play, lane, part);
		note_sent(play, lane, conn, part);
	}
	c->tx_bytes += bytes;
	sched_sent(&play->s, c, next->pipe, bytes, bytes);
	if (bytes < left)
		return;
	c->ready = false;
	sched_idle(&play->s, c, play->now);
}

/* The next object that is still to come; NEXT_NEVER: none is. */
static int64_t next_object(const struct play *play)
{
	int64_t at = NEXT_NEVER;

	for (unsigned int i = 0; i < PLAY_CONNS; i++) {
		if (play->due[i] && play->due[i] < at)
			at = play->due[i];
	}
	return at;
}

static void objects_come(struct play *play)
{
	for (unsigned int i = 0; i < PLAY_CONNS; i++) {
		if (!play->due[i] || play->due[i] > play->now)
			continue;
		play->due[i] = 0;
		play_object(play, i, play->size[i], true);
	}
}

void play_send(struct play *play, const struct next *next)
{
	if (next->act == NEXT_TWIN)
		send_twin(play, container_of(next->pipe, struct play_lane, pipe));
	else
		send_new(play, next);
}

/* The first acknowledgement, or what is waited for, whichever is sooner. */
static void advance(struct play *play, int64_t until)
{
	struct play_lane *lane;
	unsigned int i;

	if (next_object(play) < until)
		until = next_object(play);
	for (i = 0; i < play->nlanes; i++) {
		lane = &play->lane[i];
		if (lane->n && lane->flight[lane->first].acked_at < until)
			until = lane->flight[lane->first].acked_at;
		if (play->one_by_one && lane->free_at > play->now &&
		    lane->free_at < until)
			until = lane->free_at;
	}
	assert_true(until < NEXT_NEVER);
	play->now = until;
	for (i = 0; i < play->nlanes; i++) {
		lane = &play->lane[i];
		while (lane->n && lane->flight[lane->first].acked_at <= play->now) {
			lane->pipe.info.in_flight -= lane->flight[lane->first].bytes;
			lane->first = (lane->first + 1) % PLAY_FLIGHTS;
			lane->n--;
		}
	}
}

static bool has_flights(const struct play *play)
{
	unsigned int i = 0;

	while (i < play->nlanes && !play->lane[i].n)
		i++;
	return i < play->nlanes;
}

/* When the last byte of all arrived. */
static int64_t note_done(struct play *play)
{
	int64_t last = 0;

	for (unsigned int i = 0; i < play->nsent; i++) {
		const struct play_sent *sent = &play->sent[i];

		if (sent->arrived_at > play->done[sent->conn])
			play->done[sent->conn] = sent->arrived_at;
		if (sent->arrived_at > last)
			last = sent->arrived_at;
	}
	return last;
}

double play_run(struct play *play)
{
	int64_t began = play->now;

	objects_come(play);
	while (play->s.ready || next_object(play) < NEXT_NEVER ||
	       has_flights(play)) {
		struct next next = play_next(play);

		if (next.act == NEXT_WAIT)
			advance(play, next.until);
		else
			play_send(play, &next);
		objects_come(play);
	}
	return (double)(note_done(play) - began) / 1e9;
}

void play_shut(struct play *play, unsigned int path)
{
	play->paths.path[path].aggregate.limit = 0;
}

void play_deviate(struct play *play, double seconds)
{
	play->paths.path[0].variation.deviation = seconds;
	play->paths.path[1].variation.deviation = seconds;
}

void assert_near(double value, double wanted, double most)
{
	if (!(value >= wanted && value <= wanted + most))
		fail_msg("%.6f is not from %.6f on, by at most %.6f", value,
			 wanted, most);
}
