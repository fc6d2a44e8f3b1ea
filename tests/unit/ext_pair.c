/* SPDX-License-Identifier: MIT */
#include "ext_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/address.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "loopback.h"

#define PATIENCE (2 * NS_PER_SEC)

/* --- waiting --- */

struct until {
	struct pair *pair;
	bool (*done)(void *arg);
	void *arg;
};

static bool look(void *arg)
{
	struct until *u = arg;

	if (u->pair->carry)
		u->pair->carry(u->pair);
	return u->done(u->arg);
}

static void until(struct pair *pair, const char *what, bool (*done)(void *arg),
		  void *arg)
{
	struct until u = { pair, done, arg };

	assert_true(run_until(pair->engine.loop, what, look, &u));
}

/* --- the two roles --- */

static struct pair_conn *conn_of(struct pair *pair, const struct conn *c)
{
	unsigned int i = (unsigned int)(c->dst->port - PAIR_PORT);

	assert_in_range(i, 0, PAIR_CONNS - 1);
	return &pair->conn[i];
}

/* @c, which the other end opened, gets an application, whose end is @app of its pair_conn. */
static void serve(struct pair *pair, struct conn *c, struct pair_conn *pc,
		  int *app)
{
	int fd[2];

	pc->opened++;
	pc->to = destination_copy(c->dst);
	if (pair->refuse) {
		conn_reset(c, pair->refuse);
		return;
	}
	app_pair(fd);
	*app = fd[0];
	conn_attach(c, fd[1]);
}

static void on_open(struct session *s, struct conn *c)
{
	struct pair *pair = session_owner(s);
	struct pair_conn *pc = conn_of(pair, c);

	serve(pair, c, pc, &pc->server);
}

static void on_open_flow(struct session *s, struct conn *c)
{
	struct pair *pair = session_owner(s);

	if (pair->open_flow)
		pair->open_flow(pair, c);
	else
		conn_reset(c, CONN_END_DENIED);
}

static void on_answered(struct session *s, struct conn *c, uint8_t result)
{
	struct pair_conn *pc = conn_of(session_owner(s), c);

	pc->answered++;
	pc->result = result;
}

static void on_listen(struct session *s, uint16_t listener,
		      const struct destination *at)
{
	struct pair *pair = session_owner(s);

	pair->asked++;
	pair->listen_at = *at;
	session_listening(s, listener, pair->says, PAIR_PORT);
}

static void on_listening(struct session *s, uint16_t listener, uint8_t result,
			 uint16_t port)
{
	struct pair *pair = session_owner(s);

	pair->heard++;
	pair->listener = listener;
	pair->listening = result;
	pair->port = port;
}

/* The peer's port says which connection it is. */
static void on_accepted(struct session *s, struct conn *c)
{
	struct pair *pair = session_owner(s);
	struct pair_conn *pc = conn_of(pair, c);

	serve(pair, c, pc, &pc->client);
}

static void on_lacks(struct session *s, unsigned int path)
{
	struct pair *pair = session_owner(s);

	(void)path;
	while (pair->redials && session_lacks(s))
		pair_dial(pair);
}

static void on_ended(struct session *s)
{
	struct pair *pair = session_owner(s);
	bool lp = s == pair->lp;

	snprintf(lp ? pair->lp_why : pair->rp_why, sizeof(pair->lp_why), "%s",
		 session_why(s));
	if (lp)
		pair->lp_unknown = session_is_unknown(s);
	*(lp ? &pair->lp : &pair->rp) = NULL;
}

static const struct session_role lp_role = {
	.answered = on_answered, .listening = on_listening,
	.accepted = on_accepted, .lacks = on_lacks, .ended = on_ended,
};

static void on_moved(struct session *s, struct conn *c, int from)
{
	struct pair *pair = session_owner(s);

	if (c->state == CONN_CLOSED)
		pair->closed_from = from;
}

static void on_path(struct session *s, unsigned int path)
{
	struct pair *pair = session_owner(s);

	pair->told[path]++;
}

static const struct session_role rp_role = {
	.path = on_path,
	.moved = on_moved, .open = on_open, .open_flow = on_open_flow, .listen = on_listen,
	.answered = on_answered, .ended = on_ended,
};

/* --- pipes --- */

static void forget(struct pair *pair, const struct greeting *g)
{
	for (int i = 0; i < 64; i++) {
		if (pair->awaiting[i] == g)
			pair->awaiting[i] = NULL;
	}
}

static void hello_came(struct greeting *g, const struct wire_ext *said)
{
	struct pair *pair = greeting_owner(g);
	struct wire_hello hello = said->hello;
	struct conduit conduit;

	forget(pair, g);
	conduit = greeting_take(g);
	if (pair->joins == PAIR_CLOSED) {
		conduit_close(conduit);
		return;
	}
	if (pair->joins == PAIR_SENT_AWAY) {
		greet_decline(conduit, WIRE_WELCOME_UNKNOWN);
		return;
	}
	if (greet_find(&pair->engine, &hello)) {
		greet_join(pair->rp, &hello, conduit);
		return;
	}
	if (greet_objection(&hello) != WIRE_WELCOME_NEW || pair->rp) {
		greet_decline(conduit, WIRE_WELCOME_UNKNOWN);
		return;
	}
	pair->rp = greet_new(&pair->engine, &rp_role, pair, "lp", &hello,
			     conduit);
	assert_non_null(pair->rp);
}

static void hello_failed(struct greeting *g, enum greeting_failure why)
{
	(void)why;
	forget(greeting_owner(g), g);
	greeting_free(g);
}

static const struct greeting_ops rp_ops = { .came = hello_came, .failed = hello_failed };

static void welcome_came(struct greeting *g, const struct wire_ext *said)
{
	struct pair *pair = greeting_owner(g);

	pair->first = NULL;
	pair->lp = greet_welcomed(&pair->engine, &lp_role, pair, "rp",
				  &pair->hello, &said->welcome,
				  greeting_take(g));
	assert_non_null(pair->lp);
}

static void welcome_failed(struct greeting *g, enum greeting_failure why)
{
	struct pair *pair = greeting_owner(g);

	(void)why;
	pair->first = NULL;
	greeting_free(g);
}

static const struct greeting_ops lp_ops = { .came = welcome_came, .failed = welcome_failed };

static void connect_ends(struct pair *pair, int fd[2])
{
	if (pair->connect)
		pair->connect(pair, fd);
	else
		tcp_pair(fd);
}

static void await(struct pair *pair, int fd)
{
	struct conduit conduit;
	int i = 0;

	while (pair->awaiting[i])
		i++;
	assert_int_equal(conduit_open(&conduit, pair->layers, fd, true), 0);
	pair->awaiting[i] = greeting_await(pair->engine.loop, conduit,
					   PATIENCE, &rp_ops, pair);
}

void pair_dial_at(struct pair *pair, unsigned int index)
{
	int fd[2];

	connect_ends(pair, fd);
	await(pair, fd[0]);
	assert_int_equal(session_join(pair->lp, index, fd[1]), 0);
}

void pair_dial(struct pair *pair)
{
	unsigned int index = 0;

	while (!session_lacks_pipe(pair->lp, index))
		index++;
	pair_dial_at(pair, index);
}

/* Who joins begins with incarnation 1, the pipe that a session begins with with 0. */
unsigned int pair_redialled(const struct pair *pair, unsigned int index)
{
	const struct leg *leg = &pair->lp->ext->leg[index];

	return leg->known ? leg->incarnation - (index > 0) : 0;
}

void pair_kill(struct pair *pair, unsigned int index)
{
	assert_non_null(pair->lp->pipes[index]);
	shutdown(pair->lp->pipes[index]->fd, SHUT_RDWR);
}

static bool is_begun(void *arg)
{
	struct pair *pair = arg;

	if (!pair->lp)
		return false;
	while (session_lacks(pair->lp))
		pair_dial(pair);
	return true;
}

bool pair_is_settled(const struct pair *pair)
{
	return pair->lp && pair->rp &&
	       pair->lp->paths.npipes == pair->pipes &&
	       pair->rp->paths.npipes == pair->pipes;
}

static bool is_settled(void *arg)
{
	return pair_is_settled(arg);
}

void pair_settle(struct pair *pair)
{
	until(pair, "all pipes", is_settled, pair);
}

/* --- from beginning to end --- */

void pair_init(struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	settings_init(&pair->settings);
	log_init(&pair->log, "test", LOG_ERROR);
	for (int i = 0; i < PAIR_CONNS; i++)
		pair->conn[i].client = pair->conn[i].server = -1;
}

void pair_start(struct pair *pair, unsigned int pipes)
{
	struct conduit conduit;
	int fd[2];

	assert_int_equal(engine_init(&pair->engine, &pair->settings,
				     &pair->log), 0);
	pair->engine.layers = pair->layers;
	pair->pipes = pipes;
	assert_int_equal(greet_hello(&pair->hello, pipes), 0);
	pair->hello.features &= ~pair->lacks;
	if (pair->reverses)
		pair->hello.features |= WIRE_FEATURE_LISTEN;
	if (pair->settings.paths.n > 1)
		pair->hello.features |= WIRE_FEATURE_PATH;
	connect_ends(pair, fd);
	await(pair, fd[0]);
	assert_int_equal(conduit_open(&conduit, pair->layers, fd[1], false), 0);
	pair->first = greeting_say(pair->engine.loop, conduit, &pair->hello,
				   PATIENCE, &lp_ops, pair);
	until(pair, "WELCOME", is_begun, pair);
}

void pair_begin(struct pair *pair, unsigned int pipes)
{
	pair_start(pair, pipes);
	pair_settle(pair);
}

static bool both_ended(void *arg)
{
	struct pair *pair = arg;

	return !pair->lp && !pair->rp;
}

void pair_end(struct pair *pair)
{
	if (pair->lp)
		session_stop(pair->lp, "the test is over");
	if (pair->rp && !pair->lp)
		session_stop(pair->rp, "the test is over");
	until(pair, "both sessions' end", both_ended, pair);
	greeting_free(pair->first);
	for (int i = 0; i < 64; i++)
		greeting_free(pair->awaiting[i]);
	for (int i = 0; i < PAIR_CONNS; i++) {
		if (pair->conn[i].client >= 0)
			close(pair->conn[i].client);
		if (pair->conn[i].server >= 0)
			close(pair->conn[i].server);
	}
	engine_fini(&pair->engine);
	log_fini(&pair->log);
}

int pair_setup_new(void **state)
{
	struct pair *pair = malloc(sizeof(*pair));

	pair_init(pair);
	*state = pair;
	return 0;
}

void pair_set_paths(struct pair *pair)
{
	pair->settings.paths = (struct path_set){
		.n = 2,
		.path = { { .name = "main", .pipes = 2 },
			  { .name = "spare", .pipes = 2 } },
	};
	pair->redials = true;	/* those of the second are lacking until it is told of */
}

int pair_setup_paths(void **state)
{
	pair_setup_new(state);
	pair_set_paths(*state);
	return 0;
}

int pair_setup(void **state)
{
	pair_setup_new(state);
	pair_begin(*state, PAIR_PIPES);
	return 0;
}

int pair_teardown(void **state)
{
	pair_end(*state);
	free(*state);
	return 0;
}

/* --- connections --- */

int pair_accept(struct pair *pair, int i, uint16_t listener)
{
	struct destination from = destination_ipv4((uint8_t[]){ 192, 0, 2, 9 },
						   (uint16_t)(PAIR_PORT + i));
	struct sockaddr_storage peer = destination_address(&from);
	int fd[2], err;

	app_pair(fd);
	err = session_accept(pair->rp, fd[1], listener, &peer);
	if (err)
		close(fd[1]);
	pair->conn[i].server = fd[0];
	return err;
}

void pair_open(struct pair *pair, int i)
{
	struct destination to = destination_ipv4((uint8_t[]){ 192, 0, 2, 1 },
						 (uint16_t)(PAIR_PORT + i));
	int fd[2];

	app_pair(fd);
	pair->conn[i].client = fd[0];
	assert_int_equal(session_open(pair->lp, fd[1], &to, NULL), 0);
}

struct wait {
	struct pair *pair;
	int i;			/* connection */
	int fd;
	const uint8_t *bytes;
	size_t len, got;
	long how;
};

static bool is_connected(void *arg)
{
	struct wait *w = arg;

	return w->pair->conn[w->i].server >= 0 &&
	       w->pair->conn[w->i].answered;
}

void pair_connect(struct pair *pair, int i)
{
	struct wait w = { .pair = pair, .i = i };

	pair->conn[i].answered = 0;
	pair->conn[i].server = -1;
	pair_open(pair, i);
	until(pair, "SYNACK", is_connected, &w);
}

static bool has_come(void *arg)
{
	struct wait *w = arg;
	uint8_t buf[65536];
	size_t most = w->len - w->got < sizeof(buf) ? w->len - w->got :
						       sizeof(buf);
	long n = read_some(w->fd, buf, most);

	if (n <= 0) {
		assert_int_equal(n, -EAGAIN);
		return false;
	}
	assert_memory_equal(buf, w->bytes + w->got, n);
	w->got += (size_t)n;
	return w->got == w->len;
}

void pair_expect(struct pair *pair, int fd, const void *bytes, size_t len)
{
	struct wait w = { .fd = fd, .bytes = bytes, .len = len };

	until(pair, "bytes", has_come, &w);
}

static bool has_ended(void *arg)
{
	struct wait *w = arg;
	uint8_t byte;

	w->how = read_some(w->fd, &byte, 1);
	return w->how != -EAGAIN;
}

void pair_expect_end(struct pair *pair, int fd, long how)
{
	struct wait w = { .fd = fd };

	until(pair, "the end", has_ended, &w);
	assert_int_equal(w.how, how);
}

/* --- at rest --- */

static bool is_at_rest(const struct session *s)
{
	const struct extended *x = s->ext;

	for (unsigned int id = 1; id <= WIRE_ID_MAX; id++) {
		if (x->channel[id] && x->channel[id]->use.open)
			return false;
	}
	return !s->nconns && !x->kept && !keeping_has_again(x) &&
	       !s->in.early;
}

static bool both_at_rest(void *arg)
{
	const struct pair *pair = arg;

	return is_at_rest(pair->lp) && is_at_rest(pair->rp);
}

static void check_rest(const struct session *s)
{
	assert_int_equal(s->in.queued, 0);
	assert_int_equal(s->sched.ready, 0);
	assert_int_equal(s->ext->promised, 0);
	assert_int_equal(s->ext->pool.limit.used, 0);
	assert_int_equal(s->counts.pauses, 0);
	assert_int_equal(s->counts.protocol, 0);
}

static void say_what_is_left(const char *side, const struct session *s)
{
	const struct extended *x = s->ext;

	for (unsigned int id = 1; id <= WIRE_ID_MAX; id++) {
		if (x->channel[id] && x->channel[id]->use.open)
			print_error("%s: channel %u is open\n", side, id);
	}
	print_error("%s: %s connections, %zu kept, %s again, %zu early\n",
		    side, !s->nconns ? "no" : "there are",
		    (size_t)x->kept, keeping_has_again(x) ? "some" : "none",
		    (size_t)s->in.early);
}

void pair_at_rest(struct pair *pair)
{
	struct until u = { pair, both_at_rest, pair };

	if (!run_until(pair->engine.loop, "rest", look, &u)) {
		say_what_is_left("lp", pair->lp);
		say_what_is_left("rp", pair->rp);
		fail();
	}
	check_rest(pair->lp);
	check_rest(pair->rp);
	assert_int_equal(pair->engine.kept, 0);
}
