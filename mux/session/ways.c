/* SPDX-License-Identifier: MIT */
/*
 * What the two ends say of the paths of their session. LP numbers them. The HELLO of each
 * pipe names the path that it is on; PATH, which is numbered itself, tells how a path is to be
 * used from then on, and that its pipes may come from another address than before. What
 * is to be said of a path is state, and becomes a message when a pipe takes one.
 */
#include "../base/log.h"
#include "../base/sock.h"
#include "extended.h"

_Static_assert((int)PATHS_MAX == (int)WIRE_EXT_PATHS_MAX &&
	       (int)PIPES_MAX == (int)WIRE_EXT_PIPES_MAX,
	       "what the wire can name, a session can have");

bool ways_are_several(const struct extended *x)
{
	return x->welcome.features & WIRE_FEATURE_PATH;
}

struct way *ways_of(struct extended *x, unsigned int index)
{
	return &x->way[x->leg[index].path];
}

unsigned int ways_number(const struct way *way)
{
	return (unsigned int)(way - way->x->way);
}

struct path *ways_path(const struct way *way)
{
	return &way->x->s->paths.path[ways_number(way)];
}

/* An RP that is busy for a moment hears of a path so late. */
#define HEARS_LEAST (20 * NS_PER_MS)

static const struct path_set *set_of(const struct extended *x)
{
	return &x->s->engine->settings->paths;
}

/* --- LP --- */

static void tell(struct way *way)
{
	struct extended *x = way->x;

	way->due = true;
	way->serial = ++x->serial;
	loop_after(x->s->engine->loop, &x->s->out.pump);
}

void ways_announce(struct way *way)
{
	if (!ways_are_several(way->x))
		return;
	way->untold = true;
	tell(way);
}

/* What is dialled from now on may come from another address. */
void ways_down(struct way *way)
{
	const struct path_set *set = set_of(way->x);

	if (!ways_are_several(way->x) || way->down)
		return;
	way->down = true;
	log_info(way->x->s->engine->log, "session %u: path %s is down",
		 way->x->s->number, path_set_name(set, ways_number(way)));
	ways_announce(way);
}

void ways_up(struct way *way)
{
	if (!way->down)
		return;
	way->down = false;
	tell(way);
}

/* RP saw where the first pipe comes from. All others may come from elsewhere. */
void ways_begin(struct extended *x, const struct wire_hello *hello)
{
	const struct path_set *set = set_of(x);
	unsigned int i;

	for (i = 0; i < PIPES_MAX; i++)
		x->leg[i].path = (uint8_t)path_set_of(set, i);
	for (i = 0; i < set->n; i++) {
		struct path *path = &x->s->paths.path[i];

		path->backup = set->path[i].backup;
		path->cost = set->path[i].cost;
		if (i != hello->path)
			ways_announce(&x->way[i]);
	}
}

void ways_name(struct extended *x, unsigned int index, struct wire_hello *hello)
{
	const struct way *way = ways_of(x, index);
	const struct path *path = ways_path(way);

	hello->path = (uint8_t)ways_number(way);
	hello->path_flags = path->backup ? WIRE_PATH_FLAG_BACKUP : 0;
	hello->path_cost = path->cost;
}

bool ways_are_due(const struct extended *x)
{
	unsigned int i = 0;

	while (i < PATHS_MAX && !x->way[i].due)
		i++;
	return i < PATHS_MAX;
}

static uint8_t state_of(const struct way *way)
{
	const struct path *path = ways_path(way);

	if (path->off || way->down)
		return WIRE_PATH_OFF;
	return path->backup ? WIRE_PATH_BACKUP : WIRE_PATH_USE;
}

/* In a round trip it is there. RP sends away who comes before. */
static void tell_soon(struct way *way, const struct pipe *p)
{
	int64_t trip = (int64_t)(p->info.rtt_ms * NS_PER_MS);

	if (trip < HEARS_LEAST)
		trip = HEARS_LEAST;
	if (way->untold)
		loop_timer_in(way->x->s->engine->loop, &way->lack_timer,
			      trip > way->lack_pause ? trip : way->lack_pause);
}

void ways_alone(struct extended *x)
{
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++) {
		x->way[i].untold = false;
		joining_soon(&x->way[i]);
	}
}

bool ways_next(struct extended *x, const struct pipe *p, struct wire_ext *what)
{
	struct way *way = x->way;
	const struct path *path;

	if (!ways_are_due(x))
		return false;
	while (!way->due)
		way++;
	way->due = false;
	tell_soon(way, p);
	path = ways_path(way);
	*what = (struct wire_ext){
		.type = WIRE_PATH,
		.path = { .path = (uint8_t)ways_number(way),
			  .state = state_of(way), .cost = path->cost,
			  .serial = way->serial },
	};
	return true;
}

static void set_state(struct session *s, struct path *path, uint8_t state)
{
	path->off = state == WIRE_PATH_OFF;
	path->backup = state == WIRE_PATH_BACKUP;
	standby_find(s);
	if (path->off)
		suspects_off(s, path);
	loop_after(s->engine->loop, &s->out.pump);
}

void session_use_path(struct session *s, unsigned int number, uint8_t state)
{
	struct path *path = &s->paths.path[number];
	bool off = state == WIRE_PATH_OFF, backup = state == WIRE_PATH_BACKUP;

	if (!s->ext || !s->ext->lp || !session_is_up(s) ||
	    (path->off == off && path->backup == backup))
		return;
	set_state(s, path, state);
	if (ways_are_several(s->ext))
		tell(&s->ext->way[number]);
}

/* --- pipes come --- */

/* RP took it: from there it takes others. */
static void note_address(struct way *way, const struct pipe *p)
{
	struct sockaddr_storage from;

	if (!sock_address(p->fd, &from))
		way->from = from;
}

/* What a HELLO says of a path was said before any PATH that came. */
void ways_enter(struct extended *x, struct pipe *p,
		const struct wire_hello *hello)
{
	struct way *way = ways_of(x, p->index);

	if (x->lp) {
		note_address(way, p);
	} else if (ways_are_several(x) && !way->serial) {
		p->path->backup = hello->path_flags & WIRE_PATH_FLAG_BACKUP;
		p->path->cost = hello->path_cost;
	}
	standby_find(x->s);
}

/* --- RP --- */

static void use(struct session *s, const struct wire_path *said)
{
	struct path *path = &s->paths.path[said->path];

	path->cost = said->cost;
	set_state(s, path, said->state);
	if (s->role->path)
		s->role->path(s, said->path);
}

static bool is_sound(struct session *s, const struct wire_path *said)
{
	if (said->path < PATHS_MAX && said->state <= WIRE_PATH_OFF)
		return true;
	if (session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: a PATH was dropped: path %u, state %u, and there are paths 0 to %d with states 0 to %d",
			 s->number, said->path, said->state, PATHS_MAX - 1,
			 WIRE_PATH_OFF);
	return false;
}

/* What this end's policy does with so many paths nobody knows: the session ends. */
static bool is_one_too_many(struct session *s, unsigned int number)
{
	const struct path_policy *policy = s->sched.path.policy;

	if (!policy->paths ||
	    (number < policy->paths && s->paths.npaths <= policy->paths))
		return false;
	extended_condemn(s, WIRE_GOODBYE_LIMIT, "--path-policy %s is for %u paths, and LP has more of them",
			 policy->name, policy->paths);
	return true;
}

void ways_came(struct session *s, const struct wire_path *said)
{
	struct extended *x = s->ext;

	if (!ways_are_several(x) || !is_sound(s, said)) {
		s->counts.dropped++;
	} else if (said->serial <= x->way[said->path].serial) {
		s->counts.dropped++;
		s->counts.stale++;
	} else if (!is_one_too_many(s, said->path)) {
		x->way[said->path].serial = said->serial;
		use(s, said);
	}
}

void ways_init(struct extended *x)
{
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++)
		x->way[i].x = x;
}
