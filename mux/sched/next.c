/* SPDX-License-Identifier: MIT */
#include "next.h"

#include "../base/sizes.h"
#include "../conn/conn.h"
#include "../path/paths.h"
#include "../pipe/pipe.h"
#include "../wire/run.h"
#include "thin.h"

/* A pipe that lags is looked at again after this, */
#define LAG_LOOK NS_PER_MS
/* and the limit after this, should no acknowledgement be told of. */
#define LIMIT_LOOK (5 * NS_PER_MS)
/* What takes nothing only because it is doubtful, should it be acknowledged. */
#define DOUBT_LOOK (10 * NS_PER_MS)
/* What a path could take, but the policy kept for another one. */
#define KEPT_LOOK (5 * NS_PER_MS)

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

/*
 * Half a pair takes an odd number of messages: two would end it and begin another one, for which
 * the pipe would be picked again, and so on until its window is full and others' are empty.
 */
static size_t ends_a_pair(const struct pipe *p, size_t bytes, size_t payload)
{
	return bytes / payload % 2 == 0 && bytes > payload &&
	       pipe_has_half_a_pair(p) ? bytes - payload : bytes;
}

/* @limit: what the path's limit leaves. It is exceeded by less than a message, or by nothing. */
static size_t within(const struct pipe *p, size_t bytes, size_t limit)
{
	return aggregate_is_exact(&p->path->aggregate) ?
		size_least(bytes, limit - WIRE_HEADER) : bytes;
}

static struct next send_on(const struct view *v, struct pipe *p,
			   const struct sched_choice *choice, size_t room,
			   size_t limit)
{
	size_t payload = pipe_payload(p), bytes;

	if (v->sched->path.paths && v->sched->path.policy->by_message)
		room = size_least(room, payload);
	bytes = whole(choice->budget, room, payload);
	return (struct next){
		.act = NEXT_SEND,
		.pipe = p,
		.conn = choice->conn,
		.ahead = choice->ahead,
		.payload = payload,
		.bytes = within(p, ends_a_pair(p, bytes, payload), limit),
	};
}

/* Pipes that can take something, and what may be written on their paths. */
struct able {
	struct pipe *pipe[PIPES_MAX];
	unsigned int n;
	size_t room[PATHS_MAX];	/* on each, all its pipes together; by limit() */
	bool idle;		/* a path has pipes, and none of them is able; */
	bool limited;		/* of another one the limit is in the way */
};

static size_t room_on(const struct view *v, const struct able *able,
		      struct pipe *p)
{
	return size_least(pipe_room(p), able->room[paths_number(v->paths, p)]);
}

/* For pipes that take nothing now: nobody tells that one is doubtful no more. */
static struct next wait_for_pipes(const struct view *v)
{
	unsigned int i;

	for (i = 0; i < v->paths->npipes; i++) {
		if (v->paths->pipes[i]->doubtful)
			return wait_for(WAIT_FOR_PIPES, v->now + DOUBT_LOOK);
	}
	return wait_for(WAIT_FOR_PIPES, NEXT_NEVER);
}

static struct next wait_for_limit(const struct view *v, const struct able *able)
{
	struct next next = wait_for(WAIT_FOR_LIMIT, v->now + LIMIT_LOOK);

	next.pipes = able->idle;
	return next;
}

/*
 * The pipe for @c where the policy picked @p: another one where @c is thin and stays
 * there, unless the path of that one takes nothing.
 */
static struct pipe *pipe_for(const struct view *v, const struct able *able,
			     const struct conn *c, struct pipe *p)
{
	struct pipe *thin = v->scatters ? p : thin_pipe(v->paths, c, p);

	return room_on(v, able, thin) &&
	       path_choice_uses(&v->sched->path, thin->path, c->paths) ? thin : p;
}

static struct next send_new(const struct view *v, const struct able *able,
			    struct pipe *p, const struct sched_choice *choice)
{
	p = pipe_for(v, able, choice->conn, p);
	return send_on(v, p, choice, room_on(v, able, p),
		       able->room[paths_number(v->paths, p)]);
}

/* The place of the pipe that is to be used, of those on @path. */
static unsigned int best_on(const struct view *v, const struct able *able,
			    const struct path *path)
{
	struct pipe *pipe[PIPES_MAX];
	unsigned int place[PIPES_MAX], n = 0, i;

	for (i = 0; i < able->n; i++) {
		if (able->pipe[i]->path != path)
			continue;
		pipe[n] = able->pipe[i];
		place[n++] = i;
	}
	return place[v->sched->pipes->pick(v->sched, pipe, n)];
}

/* Of all: on the path that its policy picks. */
static unsigned int best(const struct view *v, const struct able *able)
{
	const struct path *path = path_choice_pick(&v->sched->path, able->pipe,
						   able->n);

	if (!path)
		return v->sched->pipes->pick(v->sched, able->pipe, able->n);
	return best_on(v, able, path);
}

/*
 * What has to go waits for another path: no limit of those that could send is in the way. Where
 * it is the policy that keeps it, nobody tells when it would decide otherwise.
 */
static struct next wait_for_another(const struct view *v,
				    const struct able *able)
{
	struct next next = able->limited ? wait_for_limit(v, able) :
					   wait_for_pipes(v);
	unsigned int i;

	for (i = 0; i < v->paths->npaths; i++) {
		if (able->room[i])
			path_unlimited(&v->paths->path[i], v->now);
	}
	if (v->sched->path.policy->takes && next.until > v->now + KEPT_LOOK)
		next.until = v->now + KEPT_LOOK;
	return next;
}

static struct next choose(const struct view *v, struct able *able)
{
	while (able->n) {
		unsigned int i = best(v, able);
		struct pipe *p = able->pipe[i];
		struct sched_choice choice;

		choice = v->sched->conns->next(v->sched, p, room_on(v, able, p),
					       v->now);
		if (choice.act == SCHED_NEW)
			return send_new(v, able, p, &choice);
		able->pipe[i] = able->pipe[--able->n];
		able->idle = true;
	}
	if (v->sched->path.bound ||
	    (v->sched->path.paths && v->sched->path.policy->takes))
		return wait_for_another(v, able);
	return able->limited ? wait_for_limit(v, able) : wait_for_pipes(v);
}

static struct pipe *pick(const struct view *v, const struct able *able)
{
	return able->pipe[best(v, able)];
}

/* What is to be sent again on @p, or NULL. */
static struct run *again_on(const struct view *v, const struct pipe *p)
{
	struct run *run = v->again[paths_number(v->paths, p)];

	return run && path_choice_uses(&v->sched->path, p->path, run->paths) ?
		run : NULL;
}

static bool goes_again(const struct view *v, const struct able *able)
{
	unsigned int i = 0;

	while (i < able->n && !again_on(v, able->pipe[i]))
		i++;
	return i < able->n;
}

static struct pipe *pick_for_again(const struct view *v,
				   const struct able *able)
{
	struct able some = *able;
	unsigned int i;

	some.n = 0;
	for (i = 0; i < able->n; i++) {
		if (again_on(v, able->pipe[i]))
			some.pipe[some.n++] = able->pipe[i];
	}
	return pick(v, &some);
}

/*
 * A bulk's runs that go again are its turn. Whoever goes ahead of turns goes ahead of
 * them as well, or a short answer would wait until a window was sent again.
 */
static struct next send_again(const struct view *v, const struct able *able)
{
	struct sched_choice choice = { .act = SCHED_WAIT };
	struct pipe *p = pick_for_again(v, able);
	struct run *again = again_on(v, p);

	if (!again->ahead && !v->full && v->sched->ready)
		choice = v->sched->conns->next(v->sched, p, room_on(v, able, p),
					       v->now);
	if (choice.act == SCHED_NEW && choice.ahead)
		return send_new(v, able, p, &choice);
	return (struct next){ .act = NEXT_AGAIN, .pipe = p, .again = again };
}

static bool has_new(const struct view *v)
{
	return !v->full && v->sched->ready;
}

static bool repeats(const struct view *v, const struct path *path)
{
	const struct twin *twin = &v->twin[path - v->paths->path];

	if (!twin->there || twin->ahead)
		return twin->there;
	return !has_new(v) &&
	       path_choice_repeats(&v->sched->path, path, twin->arrives_at);
}

/* What another path carries, over the first path that may carry it as well. */
static struct next send_twin(const struct view *v, const struct able *able)
{
	struct next next = { .act = NEXT_WAIT };
	unsigned int i;

	for (i = 0; i < able->n && next.act == NEXT_WAIT; i++) {
		const struct path *path = able->pipe[i]->path;

		if (!repeats(v, path))
			continue;
		next.act = NEXT_TWIN;
		next.pipe = able->pipe[best_on(v, able, path)];
	}
	return next;
}

static void keep_on(struct able *able, const struct path *path)
{
	unsigned int n = 0, i;

	for (i = 0; i < able->n; i++) {
		if (able->pipe[i]->path == path)
			able->pipe[n++] = able->pipe[i];
	}
	able->n = n;
}

/*
 * A connection of which a HINT said so goes over all paths, and what a faster one carries of it may
 * be more than a slow one ever takes: so there it goes ahead of what is new every other
 * time. Where the policy says it of all connections, all that is new waits for its twins.
 */
static struct next take_turns(const struct view *v, const struct able *able,
			      const struct next *twin)
{
	struct path *path = twin->pipe->path;
	bool is_new = path->twin_last && has_new(v) &&
		v->sched->path.policy->twice != PATH_TWICE_ALL;
	struct able here = *able;
	struct next next;

	path->twin_last = !is_new;
	if (!is_new)
		return *twin;
	keep_on(&here, path);
	next = choose(v, &here);
	return next.act == NEXT_SEND ? next : *twin;
}

/* Is there a pipe that is in use, and of which nothing is overdue? */
static bool has_sound_pipe(const struct paths *paths)
{
	unsigned int i;

	for (i = 0; i < paths->npipes; i++) {
		const struct pipe *p = paths->pipes[i];

		if (!p->doubtful && !p->standby && p->watch.fd >= 0)
			return true;
	}
	return false;
}

/* @bound: also those that the policy has no use for, since some may go there alone. */
static void find_able(const struct view *v, struct able *able, bool bound)
{
	const struct paths *paths = v->paths;
	bool sound = has_sound_pipe(paths);
	unsigned int i;

	able->n = 0;
	for (i = 0; i < paths->npipes; i++) {
		struct pipe *p = paths->pipes[i];

		if (pipe_room(p) && !(sound && p->doubtful) &&
		    (bound || path_choice_uses(&v->sched->path, p->path, 0)))
			able->pipe[able->n++] = p;
	}
}

static bool has_able(const struct path *path, const struct able *able)
{
	unsigned int i = 0;

	while (i < able->n && able->pipe[i]->path != path)
		i++;
	return i < able->n;
}

/* Where no pipe takes anything the limit is not in the way. */
static void find_idle(const struct view *v, struct able *able)
{
	unsigned int i;

	able->idle = false;
	for (i = 0; i < v->paths->npaths; i++) {
		struct path *path = &v->paths->path[i];

		if (has_able(path, able))
			continue;
		able->idle |= path->npipes > 0;
		path_unlimited(path, v->now);
	}
}

/* Only those pipes are able on whose path there is room: @room tells how much. */
static void limit(const struct view *v, struct able *able,
		  size_t (*room)(struct path *path, int64_t now))
{
	unsigned int n = 0, i;

	able->limited = false;
	for (i = 0; i < v->paths->npaths; i++) {
		struct path *path = &v->paths->path[i];
		bool any = has_able(path, able);

		able->room[i] = any ? room(path, v->now) : 0;
		able->limited |= any && !able->room[i];
	}
	for (i = 0; i < able->n; i++) {
		if (able->room[paths_number(v->paths, able->pipe[i])])
			able->pipe[n++] = able->pipe[i];
	}
	able->n = n;
}

bool next_has_again(const struct view *v)
{
	unsigned int i = 0;

	while (i < PATHS_MAX && !v->again[i])
		i++;
	return i < PATHS_MAX;
}

/* Nothing but twins, which no pipe takes now or the policy does not want. */
static struct next wait_with_twins(const struct view *v, const struct able *able)
{
	unsigned int i;

	for (i = 0; i < v->paths->npaths; i++) {
		if (!v->twin[i].there)
			path_unlimited(&v->paths->path[i], v->now);
	}
	return able->limited ? wait_for_limit(v, able) : wait_for_pipes(v);
}

static struct next send_some(const struct view *v, struct able *able)
{
	struct next next = { .act = NEXT_WAIT };

	if (goes_again(v, able))
		return send_again(v, able);
	if (v->twins)
		next = send_twin(v, able);
	if (next.act == NEXT_TWIN)
		return take_turns(v, able, &next);
	return has_new(v) ? choose(v, able) : wait_with_twins(v, able);
}

static struct next decide(const struct view *v)
{
	struct able able;

	if (!has_new(v) && !next_has_again(v) && !v->twins) {
		paths_unlimited(v->paths, v->now);
		return wait_for(v->full ? WAIT_FOR_ACK : WAIT_FOR_DATA,
				NEXT_NEVER);
	}
	find_able(v, &able, v->sched->path.bound);
	find_idle(v, &able);
	if (!able.n)
		return wait_for_pipes(v);
	v->sched->again = goes_again(v, &able);
	if (!v->sched->again && paths_are_spread(v->paths, v->now))
		return wait_for(WAIT_FOR_OTHERS, v->now + LAG_LOOK);
	limit(v, &able, path_room);
	if (!able.n)
		return wait_for_limit(v, &able);
	return send_some(v, &able);
}

/*
 * A copy, bound to @paths, where it arrives first, but on no pipe that is overdue itself, nor on
 * @of, which has it.
 */
static struct next send_copy(const struct view *v, enum next_act act,
			     const struct pipe *of, uint8_t paths)
{
	struct able able = { .n = 0 };
	unsigned int i;

	for (i = 0; i < v->paths->npipes; i++) {
		struct pipe *p = v->paths->pipes[i];

		if (p != of && !p->overdue && !p->doubtful && pipe_room(p) &&
		    path_choice_uses(&v->sched->path, p->path, paths))
			able.pipe[able.n++] = p;
	}
	limit(v, &able, path_room);
	if (!able.n)
		return wait_for(WAIT_FOR_PIPES, NEXT_NEVER);
	return (struct next){ .act = act, .pipe = pick(v, &able) };
}

static struct next copy_tail(const struct view *v)
{
	return send_copy(v, NEXT_TAIL, NULL, v->tail_paths);
}

static struct next repeat(const struct view *v)
{
	return send_copy(v, NEXT_REPEAT, v->repeat_of, v->repeat_paths);
}

static void only(struct able *able, struct pipe *p)
{
	unsigned int i = 0;

	while (i < able->n && able->pipe[i] != p)
		i++;
	able->n = i < able->n;
	able->pipe[0] = p;
}

/*
 * On the pipe where it arrives first. It is small and asks for little, so it need not
 * wait until a bulk has made room below the limit; but what is sent so is bounded, too.
 */
static struct next send_datagrams(const struct view *v)
{
	struct able able;
	struct pipe *p;

	find_able(v, &able, false);
	if (v->datagram_on)
		only(&able, v->datagram_on);
	if (!able.n)
		return wait_for_pipes(v);
	limit(v, &able, path_room_ahead);
	if (!able.n)
		return wait_for(WAIT_FOR_LIMIT, v->now + LIMIT_LOOK);
	p = pick(v, &able);
	return (struct next){
		.act = NEXT_DATAGRAMS,
		.pipe = p,
		.bytes = room_on(v, &able, p),
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

static bool can_send_again(const struct view *v)
{
	struct able able;

	if (!next_has_again(v))
		return false;
	find_able(v, &able, v->sched->path.bound);
	return goes_again(v, &able);
}

/* Where nothing else is to be sent now, or what is waits for another pipe. */
static struct next repeat_if_idle(const struct view *v, struct next next)
{
	struct next again = { .act = NEXT_WAIT };

	if (next.act == NEXT_WAIT && v->repeat)
		again = repeat(v);
	return again.act == NEXT_REPEAT ? again : next;
}

static struct next look_for_twins(const struct view *v, struct next next)
{
	if (v->twins_at && v->twins_at < next.until)
		next.until = v->twins_at;
	return next;
}

struct next sched_next(const struct view *v)
{
	struct next next = { .act = NEXT_WAIT };

	v->sched->round_trip = paths_round_trip(v->paths);
	v->sched->again = false;
	v->sched->path.paths = v->paths->npaths > 1 ? v->paths : NULL;
	v->sched->path.now = v->now;
	v->sched->looked = false;
	if (v->tail && !can_send_again(v))
		next = copy_tail(v);
	else if (v->repeat && v->repeat_ahead)
		next = repeat(v);
	if (next.act != NEXT_WAIT)
		return next;
	next = repeat_if_idle(v, v->datagram ? decide_beside(v) : decide(v));
	return next.act == NEXT_WAIT ? look_for_twins(v, next) : next;
}
