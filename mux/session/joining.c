/* SPDX-License-Identifier: MIT */
/*
 * LP's pipes join their session: who is told that some are lacking, and what comes of
 * the HELLO of each that was dialled.
 */
#include "extended.h"

#include <errno.h>
#include <unistd.h>

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
	       !s->pipes[index] && !x->leg[index].joining;
}

unsigned int session_lacks(const struct session *s)
{
	unsigned int i, n = 0;

	for (i = 0; i < PIPES_MAX; i++)
		n += session_lacks_pipe(s, i);
	return n;
}

bool session_is_complete(const struct session *s)
{
	return s->ext && session_is_up(s) &&
	       s->path.npipes == s->ext->hello.pipes;
}

static void tell_lacks(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, lack_timer);
	struct session *s = x->s;

	if (session_is_up(s) && session_lacks(s) && s->role->lacks)
		s->role->lacks(s);
}

void joining_soon(struct extended *x)
{
	if (x->lp && !x->lack_timer.slot)
		loop_timer_in(x->s->engine->loop, &x->lack_timer,
			      x->lack_pause);
}

void joining_now(struct extended *x)
{
	x->lack_pause = 0;
	if (session_lacks(x->s))
		loop_timer_in(x->s->engine->loop, &x->lack_timer, 0);
}

/* --- what RP says to one --- */

static struct leg *leg_of(struct extended *x, const struct greeting *g)
{
	struct leg *leg = x->leg;

	while (leg->joining != g)
		leg++;
	return leg;
}

static void not_joined(struct extended *x)
{
	x->lack_pause = x->lack_pause ? 2 * x->lack_pause : LACK_FIRST;
	if (x->lack_pause > LACK_MOST)
		x->lack_pause = LACK_MOST;
	joining_soon(x);
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
 * came from, or the others may be as dead: they are asked.
 */
static void one_is_unknown(struct extended *x)
{
	struct session *s = x->s;
	unsigned int i;

	if (!s->path.npipes) {
		is_unknown(x, "rp knows it no more, or not from this address");
		return;
	}
	for (i = 0; i < s->path.npipes; i++)
		control_ask(s, s->path.pipes[i]);
	not_joined(x);
}

static void has_joined(struct session *s)
{
	suspects_probed(s);
	if (s->role->joined)
		s->role->joined(s);
}

static void join_came(struct greeting *g, const struct wire_ext *said)
{
	struct extended *x = greeting_owner(g);
	struct leg *leg = leg_of(x, g);
	uint8_t status = said->welcome.status;
	struct conduit conduit;

	leg->joining = NULL;
	if (status == WIRE_WELCOME_RESUMED) {
		conduit = greeting_take(g);
		x->lack_pause = 0;
		if (extended_enter(x->s, (unsigned int)(leg - x->leg),
				   leg->incarnation, conduit))
			has_joined(x->s);
		else
			not_joined(x);
		return;
	}
	greeting_free(g);
	/* NEW: RP knew nothing of it. Its session without us will not last. */
	if (status == WIRE_WELCOME_UNKNOWN || status == WIRE_WELCOME_NEW)
		one_is_unknown(x);
	else
		not_joined(x);
}

/* Did RP close @fd because it has another address than where the session began? */
static bool is_from_elsewhere(const struct extended *x, int fd)
{
	struct sockaddr_storage from;

	return !sock_address(fd, &from) && !addr_same_host(&from, &x->from);
}

static void join_failed(struct greeting *g, enum greeting_failure why)
{
	struct extended *x = greeting_owner(g);
	int64_t now = loop_now(x->s->engine->loop);
	bool elsewhere = is_from_elsewhere(x, greeting_fd(g));

	leg_of(x, g)->joining = NULL;
	greeting_free(g);
	if (why == GREETING_CLOSED && x->alone_since &&
	    (elsewhere || now - x->alone_since > CLOSED_PATIENCE))
		is_unknown(x, "rp takes no pipe of it any more, or not from this address");
	else
		not_joined(x);
}

static const struct greeting_ops join_ops = {
	.came = join_came,
	.failed = join_failed,
};

static int join(struct session *s, unsigned int index, int fd)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[index];
	struct wire_hello hello = x->hello;
	struct conduit conduit;

	if (conduit_open(&conduit, s->engine->layers, fd, false))
		return -ENOMEM;
	if (leg->known)
		leg->incarnation++;
	leg->known = true;
	hello.pipe = (uint8_t)index;
	hello.incarnation = leg->incarnation;
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
	x->lack_timer.fire = tell_lacks;
}

void joining_stop(struct extended *x)
{
	unsigned int i;

	loop_timer_stop(x->s->engine->loop, &x->lack_timer);
	for (i = 0; i < PIPES_MAX; i++) {
		greeting_free(x->leg[i].joining);
		x->leg[i].joining = NULL;
	}
}
