/* SPDX-License-Identifier: MIT */
/*
 * Two sessions, LP's and RP's, with a network between them that delays each
 * pipe as it likes, and applications at both sides that write, read, end and
 * reset as chance has it:
 *
 *	client == LP's session ==[ pipes, shuffled ]== RP's session == server
 *
 * Whatever the settings and the order of things: what one end reads is what the
 * other wrote, from the beginning and without a gap; an end that closes in
 * order has all its bytes delivered; a reset never looks like a clean end; and
 * when all has ended both sessions hold nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/log.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/session/greeting.h"
#include "mux/session/session_inside.h"
#include "loopback.h"
#include "random.h"
#include "voice.h"

enum {
	PIPES = 5,
	LINKS = 24,
	WORLDS = 16,
	BYTES = 150000,		/* one way, at most */
	TRANSIT = 65536,	/* bytes between the two ends of a pipe */
	FIRST_PORT = 1000,
};

/* How a link comes to its end. */
enum manner {
	COMPLETE,	/* one end closes when all was sent and received */
	EARLY,		/* one end closes when all its own was sent */
	RESET,		/* one end resets in the middle */
	MANNERS,
};

/* An application. */
struct app {
	int fd;			/* -1: not there yet, or gone */
	struct voice voice;
	size_t reset_after;	/* bytes sent */
	bool ends;		/* it is the one that ends the link */
	bool shut;
	bool at_end, saw_reset;
};

struct link {
	struct app app[2];	/* client, server */
	enum manner manner;
};

struct transit {		/* one direction of a pipe */
	int from, to;
	uint8_t bytes[TRANSIT];
	size_t len;
	int64_t held_until;
};

struct world {
	struct random *r;
	struct engine engine;
	struct settings settings;
	struct log log;
	struct session *session[2];	/* LP's, RP's */
	unsigned int pipes;
	int fd[2][PIPES];		/* the network's ends */
	struct transit way[2 * PIPES];
	struct link link[LINKS];
	unsigned int opened, links;
	size_t most_held;		/* out of order, at either end */
};

/* --- applications --- */

static struct app *other(struct link *l, const struct app *a)
{
	return &l->app[a == &l->app[0]];
}

static void leave(struct app *a, bool hard)
{
	struct linger linger = { .l_onoff = hard };

	setsockopt(a->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(a->fd);
	a->fd = -1;
	a->at_end = true;
}

static void speak(struct world *w, struct app *a)
{
	long n = voice_speak(&a->voice, w->r, a->fd);

	if (n < 0 && n != -EAGAIN)
		a->saw_reset = true;
}

static void listen_to(struct world *w, struct app *a, const struct app *writer)
{
	long n = voice_listen(&a->voice, &writer->voice, w->r, a->fd);

	if (n > 0 || n == -EAGAIN)
		return;
	a->at_end = true;
	a->saw_reset |= n < 0;
}

/* Is it time for the one that ends the link to do so? */
static void maybe_end(struct link *l, struct app *a)
{
	if (!a->ends || a->shut)
		return;
	if (l->manner == RESET) {
		if (a->voice.sent >= a->reset_after)
			leave(a, true);
		return;
	}
	if (a->voice.sent < a->voice.to_send ||
	    (l->manner == COMPLETE &&
	     a->voice.got < other(l, a)->voice.to_send))
		return;
	shutdown(a->fd, SHUT_WR);
	a->shut = true;
}

static void play(struct world *w, struct link *l, struct app *a)
{
	if (a->fd < 0)
		return;
	if (a->voice.sent < a->voice.to_send && !a->saw_reset &&
	    random_below(w->r, 3))
		speak(w, a);
	if (random_below(w->r, 3))
		listen_to(w, a, other(l, a));
	if (a->at_end)
		leave(a, false);
	else
		maybe_end(l, a);
}

/* --- the network --- */

/* Some bytes on; now and then a pipe stands still for a while. */
static void carry(struct world *w, struct transit *t)
{
	long n;

	if (loop_clock() < t->held_until)
		return;
	if (random_below(w->r, 40) == 0)
		t->held_until = loop_clock() +
				random_below(w->r, 20) * NS_PER_MS;
	n = read_some(t->from, t->bytes + t->len,
		      random_range(w->r, 1, TRANSIT) % (TRANSIT - t->len + 1));
	if (n > 0)
		t->len += (size_t)n;
	if (!t->len)
		return;
	n = send(t->to, t->bytes, random_range(w->r, 1, (uint32_t)t->len),
		 MSG_NOSIGNAL);
	if (n <= 0)
		return;
	t->len -= (size_t)n;
	memmove(t->bytes, t->bytes + n, t->len);
}

/* --- the two sessions --- */

static void on_syn(struct session *s, struct conn *c)
{
	struct world *w = session_owner(s);
	unsigned int index = c->dst->port - FIRST_PORT;
	int fd[2];

	assert_in_range(index, 0, w->links - 1);
	assert_int_equal(w->link[index].app[1].fd, -1);
	assert_false(w->link[index].app[1].at_end);
	app_pair(fd);
	w->link[index].app[1].fd = fd[0];
	conn_attach(c, fd[1]);
}

static void on_ended(struct session *s)
{
	struct world *w = session_owner(s);

	w->session[s == w->session[1]] = NULL;
}

static const struct session_role role[2] = {
	{ .ended = on_ended },
	{ .ended = on_ended, .open = on_syn },
};

static void open_link(struct world *w)
{
	struct link *l = &w->link[w->opened];
	struct destination to =
		destination_ipv4((uint8_t[]){ 192, 0, 2, 1 },
				 (uint16_t)(FIRST_PORT + w->opened));
	int fd[2];

	app_pair(fd);
	l->app[0].fd = fd[0];
	assert_int_equal(session_open(w->session[0], fd[1], &to, NULL), 0);
	w->opened++;
}

static void script(struct world *w, struct link *l)
{
	struct app *ender = &l->app[random_below(w->r, 2)];

	l->manner = random_below(w->r, MANNERS);
	for (int side = 0; side < 2; side++) {
		struct app *a = &l->app[side];

		a->fd = -1;
		a->voice.seed = (uint8_t)random_next(w->r);
		a->voice.to_send = random_below(w->r, 3) ?
			random_below(w->r, BYTES) : random_below(w->r, 3);
	}
	ender->ends = true;
	ender->reset_after =
		random_below(w->r, (uint32_t)ender->voice.to_send + 1);
}

static void connect_pipes(struct world *w)
{
	int near[2][PIPES];

	for (unsigned int i = 0; i < w->pipes; i++) {
		for (int side = 0; side < 2; side++) {
			int fd[2];

			tcp_pair(fd);
			near[side][i] = fd[0];
			w->fd[side][i] = fd[1];
		}
		w->way[2 * i].from = w->way[2 * i + 1].to = w->fd[0][i];
		w->way[2 * i].to = w->way[2 * i + 1].from = w->fd[1][i];
	}
	for (int side = 0; side < 2; side++) {
		w->session[side] = greet_baseline(&w->engine, &role[side], w,
					       "the other", near[side],
					       w->pipes);
		assert_non_null(w->session[side]);
	}
}

static void begin(struct world *w, struct random *r, int which)
{
	memset(w, 0, sizeof(*w));
	w->r = r;
	settings_init(&w->settings);
	log_init(&w->log, "test", LOG_ERROR);
	w->settings.late = which % 2;
	w->settings.app_buffer = random_below(r, 3) * 10000;
	w->settings.conn_policy = conn_policies[which / 2 % 2];
	w->settings.pipe_policy = pipe_policies[which / 4 % 4];
	w->settings.seed = random_next(r);
	w->pipes = random_range(r, 1, PIPES);
	w->links = random_range(r, 1, LINKS);
	for (unsigned int i = 0; i < w->links; i++)
		script(w, &w->link[i]);
	assert_int_equal(engine_init(&w->engine, &w->settings, &w->log), 0);
	connect_pipes(w);
}

static void finish(struct world *w)
{
	for (int side = 0; side < 2; side++) {
		for (unsigned int i = 0; i < w->pipes; i++)
			close(w->fd[side][i]);
	}
	while (w->session[0] || w->session[1])
		run_round(w->engine.loop);
	engine_fini(&w->engine);
	log_fini(&w->log);
}

/* --- what must hold --- */

static bool all_ended(const struct world *w)
{
	for (unsigned int i = 0; i < w->links; i++) {
		if (!w->link[i].app[0].at_end || !w->link[i].app[1].at_end)
			return false;
	}
	return true;
}

static void check_link(struct link *l)
{
	struct app *ender = l->app[0].ends ? &l->app[0] : &l->app[1];
	struct app *peer = other(l, ender);

	if (l->manner == RESET) {
		assert_true(peer->saw_reset);
		return;
	}
	assert_int_equal(ender->voice.sent, ender->voice.to_send);
	assert_int_equal(peer->voice.got, ender->voice.to_send);
	if (l->manner == COMPLETE) {
		assert_int_equal(ender->voice.got, peer->voice.to_send);
		assert_false(peer->saw_reset);
	}
}

static bool is_idle(const struct session *s)
{
	return !table_conns(s->table) && !s->nconns;
}

static bool both_are_idle(void *arg)
{
	struct world *w = arg;

	for (unsigned int i = 0; i < 2 * w->pipes; i++)
		carry(w, &w->way[i]);
	return is_idle(w->session[0]) && is_idle(w->session[1]);
}

static void check_end(struct world *w)
{
	for (unsigned int i = 0; i < w->links; i++)
		check_link(&w->link[i]);
	assert_true(run_until(w->engine.loop, "all connections gone",
			      both_are_idle, w));
	for (int side = 0; side < 2; side++) {
		struct session *s = w->session[side];

		assert_int_equal(s->in.early, 0);
		assert_int_equal(s->in.queued, 0);
		assert_int_equal(s->in.full_queues, 0);
		assert_int_equal(s->sched.ready, 0);
		assert_false(s->in.paused);
		assert_int_equal(s->counts.duplicates, 0);
		assert_int_equal(s->counts.protocol, 0);
		assert_int_equal(s->counts.reorder_limit, 0);
		assert_int_equal(s->counts.queue_limit, 0);
	}
}

static void live(struct world *w)
{
	int64_t deadline = loop_clock() + 20 * NS_PER_SEC;

	while (!all_ended(w)) {
		assert_true(loop_clock() < deadline);
		if (w->opened < w->links && !random_below(w->r, 5))
			open_link(w);
		for (unsigned int i = 0; i < w->links; i++) {
			play(w, &w->link[i], &w->link[i].app[0]);
			play(w, &w->link[i], &w->link[i].app[1]);
		}
		for (unsigned int i = 0; i < 2 * w->pipes; i++)
			carry(w, &w->way[i]);
		run_round(w->engine.loop);
		assert_non_null(w->session[0]);
		assert_non_null(w->session[1]);
		for (int side = 0; side < 2; side++) {
			if (w->session[side]->in.early > w->most_held)
				w->most_held = w->session[side]->in.early;
		}
	}
}

static void whatever_happens_bytes_arrive_once_in_order(void **state)
{
	static struct world world;
	int reordered = 0;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int which = 0; which < WORLDS; which++) {
		begin(&world, &r, which);
		live(&world);
		check_end(&world);
		finish(&world);
		reordered += world.most_held > 10000;
	}
	assert_true(reordered > 0);	/* or the network was no test */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_happens_bytes_arrive_once_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
