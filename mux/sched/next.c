/* SPDX-License-Identifier: MIT */
#include "next.h"

#include "../conn/conn.h"
#include "../path/path.h"
#include "../pipe/pipe.h"
#include "thin.h"

/* A pipe that lags is looked at again after this, */
#define LAG_LOOK NS_PER_MS
/* and the limit after this, should no acknowledgement be told of. */
#define LIMIT_LOOK (5 * NS_PER_MS)
/* What takes nothing only because it is doubtful, should it be acknowledged. */
#define DOUBT_LOOK (10 * NS_PER_MS)

static struct next wait_for(enum next_wait what, int64_t until)
{
	return (struct next){ .act = NEXT_WAIT, .wait = what, .until = until };
}

/* In whole messages: a crumb at the end of a budget costs a segment. */
static size_t whole(size_t budget, size_t room, size_t payload)
{
	size_t by_budget = (budget + payload - 1) / payload;
	size_t by_room = room / (payload + WIRE_HEADER);

	if (!by_room)
		by_room = 1;
	return (by_budget < by_room ? by_budget : by_room) * payload;
}

static struct next send_on(struct pipe *p, const struct sched_choice *choice,
			   size_t room)
{
	struct next next = { .act = NEXT_SEND, .pipe = p };

	if (choice->act == SCHED_AGAIN) {
		next.act = NEXT_AGAIN;
		next.again = choice->again;
		return next;
	}
	next.conn = choice->conn;
	next.payload = pipe_payload(p);
	next.bytes = whole(choice->budget, room, next.payload);
	return next;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* For pipes that take nothing now: nobody tells that one is doubtful no more. */
static struct next wait_for_pipes(const struct view *v)
{
	unsigned int i;

	for (i = 0; i < v->path->npipes; i++) {
		if (v->path->pipes[i]->doubtful)
			return wait_for(WAIT_FOR_PIPES, v->now + DOUBT_LOOK);
	}
	return wait_for(WAIT_FOR_PIPES, NEXT_NEVER);
}

/* @able: the @n pipes that can take something; @together: all of them. */
static struct next choose(const struct view *v, struct pipe **able,
			  unsigned int n, size_t together)
{
	while (n) {
		unsigned int i = v->sched->pipes->pick(v->sched, able, n);
		struct pipe *p = able[i];
		size_t room = least(pipe_room(p), together);
		struct sched_choice choice;

		choice = v->sched->conns->next(v->sched, p, room, v->now);
		if (choice.act == SCHED_NEW) {
			p = thin_pipe(v->path, choice.conn, p);
			room = least(pipe_room(p), together);
		}
		if (choice.act != SCHED_WAIT)
			return send_on(p, &choice, room);
		able[i] = able[--n];
	}
	return wait_for_pipes(v);
}

/* It was decided once already: all that is left to choose is the pipe. */
static struct next send_again(const struct view *v, struct pipe **able,
			      unsigned int n)
{
	return (struct next){
		.act = NEXT_AGAIN,
		.pipe = able[v->sched->pipes->pick(v->sched, able, n)],
		.again = v->again,
	};
}

/* Is there a pipe that is in use, and of which nothing is overdue? */
static bool has_sound_pipe(const struct path *path)
{
	unsigned int i;

	for (i = 0; i < path->npipes; i++) {
		const struct pipe *p = path->pipes[i];

		if (!p->doubtful && !p->standby && p->watch.fd >= 0)
			return true;
	}
	return false;
}

/* Those that take something now. How many. */
static unsigned int find_able(const struct path *path, struct pipe **able)
{
	bool sound = has_sound_pipe(path);
	unsigned int n = 0, i;

	for (i = 0; i < path->npipes; i++) {
		struct pipe *p = path->pipes[i];

		if (pipe_room(p) && !(sound && p->doubtful))
			able[n++] = p;
	}
	return n;
}

static bool has_nothing(const struct view *v)
{
	return !v->again && (v->full || !v->sched->ready);
}

static struct next decide(const struct view *v)
{
	struct pipe *able[PIPES_MAX];
	unsigned int n;
	size_t together;

	if (has_nothing(v)) {
		path_unlimited(v->path, v->now);
		return wait_for(v->full ? WAIT_FOR_ACK : WAIT_FOR_DATA,
				NEXT_NEVER);
	}
	n = find_able(v->path, able);
	if (!n) {
		path_unlimited(v->path, v->now);
		return wait_for_pipes(v);
	}
	if (!v->again && path_is_spread(v->path, v->now))
		return wait_for(WAIT_FOR_OTHERS, v->now + LAG_LOOK);
	together = path_room(v->path, v->now);
	if (!together)
		return wait_for(WAIT_FOR_LIMIT, v->now + LIMIT_LOOK);
	if (v->again)
		return send_again(v, able, n);
	return choose(v, able, n, together);
}

/* Where it arrives first, but not behind what is overdue itself. */
static struct next copy_tail(const struct view *v)
{
	struct pipe *able[PIPES_MAX];
	unsigned int n = 0, i;

	for (i = 0; i < v->path->npipes; i++) {
		struct pipe *p = v->path->pipes[i];

		if (!p->overdue && !p->doubtful && pipe_room(p))
			able[n++] = p;
	}
	if (!n || !path_room(v->path, v->now))
		return wait_for(WAIT_FOR_PIPES, NEXT_NEVER);
	return (struct next){
		.act = NEXT_TAIL,
		.pipe = able[v->sched->pipes->pick(v->sched, able, n)],
	};
}

/*
 * On the pipe where it arrives first. It is small and asks for little, so it need not
 * wait until a bulk has made room below the limit; but what is sent so is bounded, too.
 */
static struct next send_datagrams(const struct view *v)
{
	struct pipe *able[PIPES_MAX];
	unsigned int n = find_able(v->path, able), i;
	size_t together;

	for (i = 0; v->datagram_on && i < n; i++) {
		if (able[i] == v->datagram_on)
			able[0] = able[i];
	}
	if (v->datagram_on)
		n = n && able[0] == v->datagram_on;
	if (!n)
		return wait_for_pipes(v);
	together = path_room_ahead(v->path, v->now);
	if (!together)
		return wait_for(WAIT_FOR_LIMIT, v->now + LIMIT_LOOK);
	i = v->sched->pipes->pick(v->sched, able, n);
	return (struct next){
		.act = NEXT_DATAGRAMS,
		.pipe = able[i],
		.bytes = least(pipe_room(able[i]), together),
	};
}

/* Both wait: for what comes first, as far as that is known. */
static struct next wait_for_both(struct next datagram, struct next others)
{
	if (others.wait == WAIT_FOR_DATA || others.wait == WAIT_FOR_ACK)
		others.wait = datagram.wait;
	if (datagram.until < others.until)
		others.until = datagram.until;
	return others;
}

static struct next decide_beside(const struct view *v)
{
	struct next datagram, others;

	datagram = send_datagrams(v);
	if (datagram.act != NEXT_WAIT)
		return datagram;
	others = decide(v);
	return others.act == NEXT_WAIT ? wait_for_both(datagram, others) :
					 others;
}

struct next sched_next(const struct view *v)
{
	struct next next = { .act = NEXT_WAIT };

	v->sched->round_trip = aggregate_base(&v->path->aggregate);
	if (v->tail && !v->again)
		next = copy_tail(v);
	if (next.act == NEXT_TAIL)
		return next;
	return v->datagram ? decide_beside(v) : decide(v);
}
