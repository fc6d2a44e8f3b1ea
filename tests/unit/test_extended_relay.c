/* SPDX-License-Identifier: MIT */
/*
 * Two sessions of the extension over a network that delays each pipe as it
 * likes, stops it for a while, and resets it, with what is under way, at one end
 * first or at both. Whatever happens: what one application reads is what the
 * other wrote, from the beginning and without a gap; who ends in order has all
 * its bytes delivered; a reset never looks like an end in order; and when all is
 * over nothing is held or kept.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/sched/path_policy.h"
#include "ext_pair.h"
#include "loopback.h"
#include "random.h"
#include "toy_layer.h"
#include "voice.h"

enum {
	HOPS = 512,		/* pipes in all */
	TRANSIT = 65536,
	LINKS = 40,
	WORLDS = 8,
	WORLDS_OF_PATHS = 2,	/* for each policy */
	BYTES = 400000,
	REST_NS = 100000,	/* after a round in which nothing moved */
};

/* In the middle of a pipe: LP's side and RP's. */
struct hop {
	int fd[2];		/* -1: reset */
	size_t len[2];		/* on the way from that side */
	uint8_t *bytes[2];
	int64_t held_until;
};

struct app {
	int fd;			/* -1: not there yet, or gone */
	struct voice voice;
	size_t reset_after;	/* bytes sent */
	bool ends, shut, at_end, saw_reset, came;
};

struct link {
	struct app app[2];	/* client, server */
	bool resets;
	bool begun;
};

struct world {
	struct pair pair;
	struct random *r;
	struct hop hop[HOPS];
	unsigned int hops, resets;
	bool moved;		/* bytes, in this round */
	unsigned int cuts;	/* rounds after which a chunk was left */
	struct link link[LINKS];
};

/* --- the network --- */

static void add_hop(struct pair *pair, int fd[2])
{
	struct world *w = pair->network;
	struct hop *h = &w->hop[w->hops++];
	int lp[2], rp[2];

	assert_true(w->hops < HOPS);
	tcp_pair(lp);
	tcp_pair(rp);
	fd[0] = rp[0];
	fd[1] = lp[0];
	h->fd[0] = lp[1];
	h->fd[1] = rp[1];
	for (int i = 0; i < 2; i++)
		h->bytes[i] = malloc(TRANSIT);
}

static void drop(struct hop *h, int side)
{
	if (h->fd[side] < 0)
		return;
	sock_reset(h->fd[side]);
	h->fd[side] = -1;
}

static void close_hop(struct hop *h)
{
	for (int side = 0; side < 2; side++) {
		drop(h, side);
		free(h->bytes[side]);
		h->bytes[side] = NULL;
	}
}

/* From one side to the other. One that ended there is so here, some time. */
static void carry(struct world *w, struct hop *h, int side)
{
	size_t room = TRANSIT - h->len[side];
	long n;

	if (h->fd[side] < 0)
		return;
	if (h->fd[!side] < 0) {
		if (random_below(w->r, 20) == 0)
			drop(h, side);
		return;
	}
	n = read_some(h->fd[side], h->bytes[side] + h->len[side],
		      random_range(w->r, 0, (uint32_t)room));
	if (n < 0 && n != -EAGAIN)
		drop(h, side);
	if (n > 0) {
		h->len[side] += (size_t)n;
		w->moved = true;
	}
	if (!h->len[side])
		return;
	n = send(h->fd[!side], h->bytes[side],
		 random_range(w->r, 1, (uint32_t)h->len[side]), MSG_NOSIGNAL);
	if (n <= 0)
		return;
	w->moved = true;
	h->len[side] -= (size_t)n;
	memmove(h->bytes[side], h->bytes[side] + n, h->len[side]);
}

/* Of hundreds of pipes a few are there: the others are passed over. */
static void be_network(struct pair *pair)
{
	struct world *w = pair->network;
	int64_t now = loop_clock();

	for (unsigned int i = 0; i < w->hops; i++) {
		struct hop *h = &w->hop[i];

		if ((h->fd[0] < 0 && h->fd[1] < 0) || h->held_until > now)
			continue;
		if (random_below(w->r, 60) == 0)
			h->held_until = now +
					random_below(w->r, 15) * NS_PER_MS;
		carry(w, h, 0);
		carry(w, h, 1);
	}
}

/*
 * A handshake takes one more round trip, and of several paths each is dialled after a pause. Who
 * has no pipe and loses each before it is welcomed, for two seconds, gives the session up: so it
 * is left alone then.
 */
static void maybe_reset_one(struct world *w)
{
	struct hop *h = &w->hop[random_below(w->r, w->hops)];

	if ((w->pair.layers || w->pair.settings.paths.n) &&
	    !w->pair.lp->paths.npipes)
		return;
	if (w->hops > HOPS - 20 || random_below(w->r, 30) || h->fd[0] < 0 ||
	    h->fd[1] < 0)
		return;
	w->resets++;
	drop(h, (int)random_below(w->r, 2));
}

/* --- applications --- */

static void leave(struct app *a, bool hard)
{
	if (hard)
		sock_reset(a->fd);
	else
		close(a->fd);
	a->fd = -1;
	a->at_end = true;
}

static void speak(struct world *w, struct app *a)
{
	long n = voice_speak(&a->voice, w->r, a->fd);

	w->moved |= n > 0;
	if (n < 0 && n != -EAGAIN)
		a->saw_reset = a->at_end = true;
}

static void listen_to(struct world *w, struct app *a, const struct app *writer)
{
	long n = voice_listen(&a->voice, &writer->voice, w->r, a->fd);

	w->moved |= n > 0;
	if (n > 0 || n == -EAGAIN)
		return;
	a->at_end = true;
	a->saw_reset |= n < 0;
}

static void play(struct world *w, struct link *l, int side)
{
	struct app *a = &l->app[side];

	if (a->fd < 0)
		return;
	if (!a->shut && !a->saw_reset && random_below(w->r, 3))
		speak(w, a);
	if (!a->at_end && random_below(w->r, 3))
		listen_to(w, a, &l->app[!side]);
	if (l->resets && a->ends && a->voice.sent >= a->reset_after) {
		leave(a, true);
	} else if (!a->shut && !a->saw_reset &&
		   a->voice.sent == a->voice.to_send &&
		   !(l->resets && a->ends)) {
		shutdown(a->fd, SHUT_WR);
		a->shut = true;
	}
	if (a->fd >= 0 && a->at_end && (a->shut || a->saw_reset))
		leave(a, false);
}

static void script(struct world *w, struct link *l)
{
	struct app *ender = &l->app[random_below(w->r, 2)];

	memset(l, 0, sizeof(*l));
	l->resets = random_below(w->r, 3) == 0;
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

static void begin_link(struct world *w, int i)
{
	struct link *l = &w->link[i];

	pair_open(&w->pair, i);
	l->app[0].fd = w->pair.conn[i].client;
	w->pair.conn[i].client = -1;
	l->app[0].came = l->begun = true;
}

/* RP has made the server's end. */
static void welcome_server(struct world *w, int i)
{
	struct app *a = &w->link[i].app[1];

	if (a->came || w->pair.conn[i].server < 0)
		return;
	a->fd = w->pair.conn[i].server;
	w->pair.conn[i].server = -1;
	a->came = true;
}

/* --- what must hold --- */

static bool link_has_ended(const struct link *l)
{
	/* A client may reset before the server was asked for. */
	return l->begun && l->app[0].at_end && l->app[0].fd < 0 &&
	       (!l->app[1].came || (l->app[1].at_end && l->app[1].fd < 0));
}

static void check_link(const struct link *l)
{
	const struct app *ender = l->app[0].ends ? &l->app[0] : &l->app[1];
	const struct app *peer = ender == &l->app[0] ? &l->app[1] : &l->app[0];

	if (l->resets) {
		assert_true(!peer->came || peer->saw_reset);
		return;
	}
	for (int side = 0; side < 2; side++) {
		assert_false(l->app[side].saw_reset);
		assert_int_equal(l->app[side].voice.got,
				 l->app[!side].voice.to_send);
	}
}

static bool all_ended(struct world *w)
{
	for (int i = 0; i < LINKS; i++) {
		if (!link_has_ended(&w->link[i]))
			return false;
	}
	return true;
}

/*
 * Who waits for a pipe that is held, or for a timer, rests. Rounds without end
 * took the processor and, as each may reset a pipe, left the last links hardly
 * a pipe to end on.
 */
static void rest(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = REST_NS }, NULL);
}

static void live(struct world *w)
{
	int64_t deadline = loop_clock() + 60 * NS_PER_SEC;
	int begun = 0;

	while (!all_ended(w)) {
		assert_true(loop_clock() < deadline);
		w->moved = false;
		if (begun < LINKS && !random_below(w->r, 4))
			begin_link(w, begun++);
		for (int i = 0; i < begun; i++) {
			welcome_server(w, i);
			play(w, &w->link[i], 0);
			play(w, &w->link[i], 1);
		}
		be_network(&w->pair);
		maybe_reset_one(w);
		run_round(w->pair.engine.loop);
		if (!w->moved)
			rest();
		if (!w->pair.lp || !w->pair.rp)
			fail_msg("a session ended: %s; %s", w->pair.lp_why,
				 w->pair.rp_why);
		w->cuts += w->pair.lp->ext->cut || w->pair.rp->ext->cut;
	}
}

/* Some of the pipes on each. */
static unsigned int add_paths(struct world *w, const struct path_policy *policy)
{
	struct path_set *set = &w->pair.settings.paths;
	unsigned int i, pipes = 0;

	w->pair.settings.path_policy = policy;
	for (set->n = 0; set->n < 2; set->n++) {
		set->path[set->n].pipes = random_range(w->r, 1, 3);
		pipes += set->path[set->n].pipes;
	}
	for (i = 0; i < set->n; i++)
		strcpy(set->path[i].name, i ? "b" : "a");
	return pipes;
}

/* @policy: of two paths; NULL: there is one. */
static void begin(struct world *w, struct random *r, int which,
		  struct layers *layers, const struct path_policy *policy)
{
	unsigned int pipes;

	memset(w, 0, sizeof(*w));
	w->r = r;
	pair_init(&w->pair);
	w->pair.connect = add_hop;
	w->pair.carry = be_network;
	w->pair.network = w;
	w->pair.redials = true;
	w->pair.layers = layers;
	w->pair.settings.late = which % 4 != 3;
	w->pair.settings.app_buffer = 10000;
	w->pair.settings.keep = which % 2 ? KEEP_MAX : 300000;
	w->pair.settings.window_memory = which % 3 ? WINDOW_MEMORY : 1 << 20;
	if (!policy)
		w->pair.settings.reinject = (enum reinject_mode)(which % 3);
	else if (which % 2)	/* rates are the kernel's: the limit has none before all is over */
		w->pair.settings.aggregate = AGGREGATE_OFF;
	for (int i = 0; i < LINKS; i++)
		script(w, &w->link[i]);
	pipes = policy ? add_paths(w, policy) : random_range(r, 1, 6);
	pair_start(&w->pair, pipes);
}

static void finish(struct world *w)
{
	while (w->hops)
		close_hop(&w->hop[--w->hops]);
	w->pair.redials = false;
	session_stop(w->pair.lp, "the test is over");
	session_stop(w->pair.rp, "the test is over");
	pair_end(&w->pair);
}

static void worlds(const char *seed, struct layers *layers,
		   const struct path_policy *policy)
{
	static struct world w;
	uint64_t again = 0, resets = 0, reinjected = 0, cuts = 0;
	int n = policy ? WORLDS_OF_PATHS : WORLDS;
	struct random r;

	random_begin(&r, seed);
	for (int which = 0; which < n; which++) {
		begin(&w, &r, which, layers, policy);
		live(&w);
		for (int i = 0; i < LINKS; i++)
			check_link(&w.link[i]);
		pair_at_rest(&w.pair);
		again += w.pair.lp->counts.again + w.pair.rp->counts.again;
		resets += w.resets;
		reinjected += w.pair.lp->counts.reinjected +
			      w.pair.rp->counts.reinjected;
		cuts += w.cuts;
		finish(&w);
	}
	print_message("%llu resets, %llu messages sent again, %llu reinjected, %llu rounds with a chunk\n",
		      (unsigned long long)resets, (unsigned long long)again,
		      (unsigned long long)reinjected, (unsigned long long)cuts);
	/* Or it was no test. */
	assert_true(resets > 2u * (unsigned int)n &&
		    again > 10u * (unsigned int)n);
	if (policy)
		assert_int_equal(reinjected > 0, policy->twice != PATH_TWICE_NEVER);
	assert_int_equal(cuts > 0, policy && policy->from_end);
}

static void whatever_happens_to_pipes_bytes_arrive_once_in_order(void **state)
{
	(void)state;
	worlds(__func__, NULL, NULL);
}

/* *state is their policy: that sends all twice, some, or takes from both ends. */
static void and_over_two_paths(void **state)
{
	const struct path_policy *policy = *state;

	worlds(policy->name, NULL, policy);
}

static void and_so_they_do_behind_a_layer(void **state)
{
	struct toy_layers toys;

	(void)state;
	toy_layers_init(&toys, "toy");
	worlds(__func__, &toys.layers, NULL);
	assert_int_equal(toys.there, 0);
}

/* --- a pipe that goes dark --- */

struct dark {
	struct world *w;
	int64_t began;
	size_t sent, got;
	bool echoed;
};

static void begin_quiet(struct world *w, struct random *r)
{
	memset(w, 0, sizeof(*w));
	w->r = r;
	pair_init(&w->pair);
	w->pair.connect = add_hop;
	w->pair.carry = be_network;
	w->pair.network = w;
	w->pair.redials = true;
	pair_start(&w->pair, 4);
}

static bool is_open(void *arg)
{
	struct world *w = arg;

	be_network(&w->pair);
	return w->pair.conn[0].answered && w->pair.conn[1].answered &&
	       pair_is_settled(&w->pair);
}

static void bulk(struct dark *d)
{
	static uint8_t buf[1 << 16];
	const struct pair_conn *pc = &d->w->pair.conn[0];
	ssize_t n = send(pc->server, buf, sizeof(buf), MSG_NOSIGNAL);

	d->sent += n > 0 ? (size_t)n : 0;
	n = read_some(pc->client, buf, sizeof(buf));
	d->got += n > 0 ? (size_t)n : 0;
}

static bool has_echoed(void *arg)
{
	struct dark *d = arg;
	const struct pair_conn *pc = &d->w->pair.conn[1];
	char byte;

	be_network(&d->w->pair);
	bulk(d);
	if (read_some(pc->server, &byte, 1) == 1)
		assert_int_equal(send(pc->server, &byte, 1, 0), 1);
	return read_some(pc->client, &byte, 1) == 1;
}

static bool is_redialled(void *arg)
{
	struct dark *d = arg;

	be_network(&d->w->pair);
	bulk(d);
	return d->w->pair.lp->ext->leg[0].incarnation > 0 &&
	       pair_is_settled(&d->w->pair);
}

/* One of four pipes carries nothing any more, either way, and nobody is told. */
static void a_dark_pipe_is_passed_over_and_dialled_again(void **state)
{
	static struct world w;
	struct dark d = { .w = &w };
	struct random r;
	size_t got;

	(void)state;
	random_begin(&r, __func__);
	begin_quiet(&w, &r);
	pair_open(&w.pair, 0);
	pair_open(&w.pair, 1);
	assert_true(run_until(w.pair.engine.loop, "two links", is_open, &w));
	for (int64_t end = loop_clock() + NS_PER_SEC; loop_clock() < end;) {
		be_network(&w.pair);
		bulk(&d);
		run_round(w.pair.engine.loop);
	}
	w.hop[0].held_until = INT64_MAX;
	got = d.got;
	for (int i = 0; i < 4; i++) {
		d.began = loop_clock();
		assert_int_equal(send(w.pair.conn[1].client, "x", 1, 0), 1);
		assert_true(run_until(w.pair.engine.loop, "an echo", has_echoed,
				      &d));
		assert_true(loop_clock() - d.began < 12 * NS_PER_SEC);
	}
	for (int64_t end = loop_clock() + 2 * NS_PER_SEC; loop_clock() < end;) {
		be_network(&w.pair);
		bulk(&d);
		run_round(w.pair.engine.loop);
	}
	assert_true(d.got > got + (1 << 20));
	/*
	 * RP, which sends the bulk, gives the pipe up after 5 s. Nobody tells LP:
	 * had it nothing of its own on it, its PING finds out, 15 + 5 s.
	 */
	for (int64_t end = loop_clock() + 16 * NS_PER_SEC;
	     !is_redialled(&d) && loop_clock() < end;)
		run_round(w.pair.engine.loop);
	assert_true(run_until(w.pair.engine.loop, "a new pipe", is_redialled,
			      &d));
	finish(&w);
}

#define OVER_TWO_PATHS(policy) { .name = #policy, \
	.test_func = and_over_two_paths, \
	.initial_state = (void *)(uintptr_t)&(policy) }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			whatever_happens_to_pipes_bytes_arrive_once_in_order),
		cmocka_unit_test(and_so_they_do_behind_a_layer),
		OVER_TWO_PATHS(path_ecf),
		OVER_TWO_PATHS(path_copies),
		OVER_TWO_PATHS(path_dems_b),
		OVER_TWO_PATHS(path_dems_s),
		OVER_TWO_PATHS(path_dems_f),
		cmocka_unit_test(a_dark_pipe_is_passed_over_and_dialled_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
