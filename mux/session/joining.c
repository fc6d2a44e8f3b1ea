/* SPDX-License-Identifier: MIT */
/*
 * LP's pipes join their session: who is told that some are lacking, and what comes of
 * the HELLO of each that was dialled.
 */
#include "extended.h"

#include <errno.h>
#include <unistd.h>

#include "../base/sock.h"

/* LP: for WELCOME on a pipe that joins; and between tries that fail, doubling. */
#define JOIN_PATIENCE (10 * NS_PER_SEC)
#define LACK_FIRST (100 * NS_PER_MS)
#define LACK_MOST (5 * NS_PER_SEC)
/* A session without pipes to which each new one is closed has to go after it. */
#define CLOSED_PATIENCE (2 * NS_PER_SEC)

/* --- pipes are lacking --- */

bool session_lacks_pipe(const struct session *s, unsigned int index)
{
	const struct extended *x = s->ext;

	return x && x->lp && session_is_up(s) && index < x->hello.pipes &&
	       !s->pipes[index] && !x->leg[index].joining &&
	       !x->way[x->leg[index].path].untold;
}

unsigned int session_lacks(const struct session *s)
{
	unsigned int i, n = 0;

	for (i = 0; i < PIPES_MAX; i++)
		n += session_lacks_pipe(s, i);
	return n;
}

unsigned int session_lacks_on(const struct session *s, unsigned int path)
{
	unsigned int i, n = 0;

	for (i = 0; i < PIPES_MAX; i++)
		n += session_lacks_pipe(s, i) && s->ext->leg[i].path == path;
	return n;
}

bool session_is_complete(const struct session *s, unsigned int path)
{
	unsigned int i;

	if (!s->ext || !session_is_up(s))
		return false;
	for (i = 0; i < s->ext->hello.pipes; i++) {
		if (!s->pipes[i] && s->ext->leg[i].path == path)
			return false;
	}
	return true;
}

static void tell_lacks(struct timer *t)
{
	struct way *way = container_of(t, struct way, lack_timer);
	struct session *s = way->x->s;
	unsigned int path = ways_number(way);

	/* Set before there was something to tell: again when that has gone. */
	if (way->untold && way->due)
		return;
	way->untold = false;
	if (session_is_up(s) && session_lacks_on(s, path) && s->role->lacks)
		s->role->lacks(s, path);
}

void joining_soon(struct way *way)
{
	if (way->x->lp && !way->lack_timer.slot)
		loop_timer_in(way->x->s->engine->loop, &way->lack_timer,
			      way->lack_pause);
}

void joining_now(struct extended *x)
{
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++) {
		x->way[i].lack_pause = 0;
		if (session_lacks_on(x->s, i))
			loop_timer_in(x->s->engine->loop, &x->way[i].lack_timer,
				      0);
	}
}

/* --- what RP says to one --- */

static struct leg *leg_of(struct extended *x, const struct greeting *g)
{
	struct leg *leg = x->leg;

	while (leg->joining != g)
		leg++;
	return leg;
}

/* Of the pipes of one try the first that fails begins the pause before the next one. */
static void not_joined(struct way *way)
{
	if (way->lack_timer.slot)
		return;
	way->lack_pause = way->lack_pause ? 2 * way->lack_pause : LACK_FIRST;
	if (way->lack_pause > LACK_MOST)
		way->lack_pause = LACK_MOST;
	joining_soon(way);
}

static void is_unknown(struct extended *x, const char *why)
{
	x->unknown = true;
	session_fail(x->s, "%s", why);
}

bool session_is_unknown(const struct session *s)
{
	return s->ext && s->ext->unknown;
}

/*
 * Said to one pipe while there are others, it may be about the address that this one
 * came from, or the others may be as dead: they are asked, and told of the path.
 */
static void one_is_unknown(struct way *way)
{
	struct extended *x = way->x;
	struct session *s = x->s;
	unsigned int i;

	if (!s->paths.npipes) {
		is_unknown(x, "rp knows it no more, or not from this address");
		return;
	}
	for (i = 0; i < s->paths.npipes; i++)
		control_ask(s, s->paths.pipes[i]);
	ways_announce(way);
	not_joined(way);
}

static void has_joined(struct way *way)
{
	struct session *s = way->x->s;

	suspects_probed(way);
	ways_up(way);
	if (s->role->joined)
		s->role->joined(s, ways_number(way));
}

/* Of the present incarnation of the pipe with this place. */
static struct wire_hello hello_of(struct extended *x, const struct leg *leg)
{
	struct wire_hello hello = x->hello;

	hello.pipe = (uint8_t)(leg - x->leg);
	hello.incarnation = leg->incarnation;
	ways_name(x, hello.pipe, &hello);
	return hello;
}

static void join_came(struct greeting *g, const struct wire_ext *said)
{
	struct extended *x = greeting_owner(g);
	struct leg *leg = leg_of(x, g);
	struct way *way = &x->way[leg->path];
	uint8_t status = said->welcome.status;
	struct wire_hello hello = hello_of(x, leg);
	struct conduit conduit;

	leg->joining = NULL;
	if (status == WIRE_WELCOME_RESUMED) {
		conduit = greeting_take(g);
		way->lack_pause = 0;
		if (extended_enter(x->s, &hello, conduit))
			has_joined(way);
		else
			not_joined(way);
		return;
	}
	greeting_free(g);
	/* NEW, if one says so, is UNKNOWN: RP knew nothing of it. */
	if (status == WIRE_WELCOME_UNKNOWN || status == WIRE_WELCOME_NEW)
		one_is_unknown(way);
	else
		not_joined(way);
}

/* Did RP close @fd because it has another address than the pipes of the path that it took? */
static bool is_from_elsewhere(const struct way *way, int fd)
{
	struct sockaddr_storage from;

	return !sock_address(fd, &from) && !addr_same_host(&from, &way->from);
}

static void join_failed(struct greeting *g, enum greeting_failure why)
{
	struct extended *x = greeting_owner(g);
	int64_t now = loop_now(x->s->engine->loop);
	struct leg *leg = leg_of(x, g);
	struct way *way = &x->way[leg->path];
	bool elsewhere = is_from_elsewhere(way, greeting_fd(g));
	bool stranger = why == GREETING_STRANGER;

	leg->joining = NULL;
	greeting_free(g);
	if ((stranger || why == GREETING_CLOSED) && x->alone_since &&
	    (elsewhere || now - x->alone_since > CLOSED_PATIENCE))
		is_unknown(x, stranger ? "rp has not got its key any more" :
			   "rp takes no pipe of it any more, or not from this address");
	else
		not_joined(way);
}

static const struct greeting_ops join_ops = {
	.came = join_came,
	.failed = join_failed,
};

static int join(struct session *s, unsigned int index, int fd)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[index];
	struct wire_hello hello;
	struct conduit conduit;

	if (conduit_open(&conduit, x->layers, fd, false))
		return -ENOMEM;
	/* Above 0 at its first time, too: an RP without the session is to begin none. */
	leg->incarnation++;
	leg->known = true;
	hello = hello_of(x, leg);
	kept_init(&leg->kept, leg->incarnation);
	roaming_note(leg, fd);
	leg->joining = greeting_say(s->engine->loop, conduit, &hello,
				    JOIN_PATIENCE, &join_ops, x);
	return leg->joining ? 0 : -ENOMEM;
}

int session_join(struct session *s, unsigned int index, int fd)
{
	if (!session_lacks_pipe(s, index)) {
		close(fd);
		return -EINVAL;
	}
	return join(s, index, fd);
}

void joining_init(struct extended *x)
{
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++)
		x->way[i].lack_timer.fire = tell_lacks;
}

void joining_stop(struct extended *x)
{
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++)
		loop_timer_stop(x->s->engine->loop, &x->way[i].lack_timer);
	for (i = 0; i < PIPES_MAX; i++) {
		greeting_free(x->leg[i].joining);
		x->leg[i].joining = NULL;
	}
}
