/* SPDX-License-Identifier: MIT */
/*
 * Both ends of a session of the extension, LP's and RP's, and between them a
 * network that the input plays: which pipe carries how much which way, which is
 * reset at which end, when one is dialled again, how time goes by. The input also
 * plays the applications of some connections. Where both ends agree on feature LISTEN it says
 * what LP asks RP to listen on, who comes there, and when RP takes it back. It chooses the
 * policies, and of two paths it says how each is to be used.
 *
 * Asserted: what an application reads is what the other one wrote, from the
 * beginning and without a gap; it sees an end in order only where the other one
 * ended so, and all of it came; neither end ever finds that the other broke a
 * rule; and once the network is well again all comes to rest: who was to read
 * has read all, nothing is kept, held or granted, no id is in use, RP listens where LP
 * believes it does.
 *
 * Where an application resets its connection, how much of what either of them wrote
 * arrives is not known, nor whether one that had ended in order before is seen to
 * have; but the other one comes to an end. Where none does nobody sees a reset,
 * unless an end says that it met a limit.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mux/base/log.h"
#include "mux/base/sock.h"
#include "mux/conn/address.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/session/extended.h"
#include "apps.h"
#include "check.h"
#include "clock.h"
#include "hinting.h"
#include "hop.h"
#include "input.h"
#include "links.h"
#include "sockets.h"

enum {
	LINKS = 6,
	LISTENERS = 4,
	HOPS = 24,
	ROUNDS_TO_REST = 3000,
	STEPS = 400,
	CONN_POLICIES = 5,
	PIPE_POLICIES = 5,
	PATH_POLICIES = 11,
};

/* LP, of a listener: it was not asked for, is, was refused, is there. */
enum asks { ASKS_NOTHING, ASKS_NOW, ASKS_REFUSED, ASKS_HAS };

struct scene {
	struct engine engine;
	struct settings settings;
	struct log log;
	struct session *lp, *rp;	/* NULL before they began, and at their end */
	struct wire_hello hello;
	struct greeting *first;
	bool began, ended;
	struct hop hop[HOPS];
	unsigned int hops;
	struct link link[LINKS];
	unsigned int links;
	struct destination at[LISTENERS];
	enum asks asks[LISTENERS];
	bool listens[LISTENERS];	/* RP does */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- the two roles --- */

/* @c is of the connection that @port tells, whose other application is at @side. */
static void answer(struct scene *scene, struct conn *c, int side, uint16_t port)
{
	int fd[2];

	check(port < scene->links && scene->link[port].opener != side);
	app_pair(true, fd);
	link_comes(&scene->link[port], side, fd[0]);
	conn_attach(c, fd[1]);
}

static void on_open(struct session *s, struct conn *c)
{
	answer(session_owner(s), c, RP, c->dst->port);
}

static void on_accepted(struct session *s, struct conn *c)
{
	struct scene *scene = session_owner(s);
	struct destination peer = destination_peer_of(c->dst);

	check(scene->asks[destination_listener_of(c->dst)] != ASKS_NOTHING);
	answer(scene, c, LP, peer.port);
}

static void on_listen(struct session *s, uint16_t listener,
		      const struct destination *at)
{
	struct scene *scene = session_owner(s);

	check(listener < LISTENERS && at->port == 1000 + listener);
	scene->listens[listener] = true;
	session_listening(s, listener, WIRE_LISTENING_YES, at->port);
}

/* Copies of what RP said before may come late. */
static void on_listening(struct session *s, uint16_t listener, uint8_t result,
			 uint16_t port)
{
	struct scene *scene = session_owner(s);
	enum asks *asks = &scene->asks[listener];

	check(listener < LISTENERS && *asks != ASKS_NOTHING);
	check(result == WIRE_LISTENING_LIMIT || port == 1000 + listener);
	if (result)
		*asks = ASKS_REFUSED;
	else if (*asks == ASKS_NOW)
		*asks = ASKS_HAS;
}

static void on_ended(struct session *s)
{
	struct scene *scene = session_owner(s);

	check(!s->counts.protocol);
	*(s == scene->lp ? &scene->lp : &scene->rp) = NULL;
	scene->ended = true;
}

static const struct session_role rp_role = {
	.open = on_open, .listen = on_listen, .ended = on_ended,
};
static const struct session_role lp_role = {
	.accepted = on_accepted, .listening = on_listening, .ended = on_ended,
};

/* --- pipes --- */

static struct hop *hop_of(struct scene *scene, const struct greeting *g)
{
	struct hop *hop = scene->hop;

	while (hop->greeting != g)
		hop++;
	return hop;
}

static void hello_came(struct greeting *g, const struct wire_ext *said)
{
	struct scene *scene = greeting_owner(g);
	struct wire_hello hello = said->hello;
	struct session *s = greet_find(&scene->engine, &hello);
	struct conduit conduit;

	hop_of(scene, g)->greeting = NULL;
	conduit = greeting_take(g);
	if (s)
		greet_join(s, &hello, conduit);
	else if (greet_objection(&hello) == WIRE_WELCOME_NEW && !scene->rp)
		scene->rp = greet_new(&scene->engine, &rp_role, scene, "lp",
				      &hello, conduit);
	else
		greet_decline(conduit, WIRE_WELCOME_UNKNOWN);
}

static void hello_failed(struct greeting *g, enum greeting_failure why)
{
	(void)why;
	hop_of(greeting_owner(g), g)->greeting = NULL;
	greeting_free(g);
}

static const struct greeting_ops rp_ops = { .came = hello_came, .failed = hello_failed };

static void welcome_came(struct greeting *g, const struct wire_ext *said)
{
	struct scene *scene = greeting_owner(g);

	scene->first = NULL;
	scene->lp = greet_welcomed(&scene->engine, &lp_role, scene, "rp",
				   &scene->hello, &said->welcome,
				   greeting_take(g));
	check(scene->lp != NULL);
	scene->began = true;
}

static void welcome_failed(struct greeting *g, enum greeting_failure why)
{
	struct scene *scene = greeting_owner(g);

	(void)why;
	scene->first = NULL;
	greeting_free(g);
	scene->ended = true;
}

static const struct greeting_ops lp_ops = { .came = welcome_came, .failed = welcome_failed };

/* LP's socket of a new pipe. */
static int new_hop(struct scene *scene)
{
	static uint8_t bytes[HOPS][2][HOP_TRANSIT];
	struct hop *hop = &scene->hop[scene->hops];
	bool tcp = scene->settings.late;
	int lp[2], rp[2];

	stream_pair(tcp, lp);
	stream_pair(tcp, rp);
	hop->fd[LP] = lp[1];
	hop->fd[RP] = rp[1];
	sock_nodelay(lp[1]);
	sock_nodelay(rp[1]);
	hop->bytes[LP] = bytes[scene->hops][LP];
	hop->bytes[RP] = bytes[scene->hops++][RP];
	hop->greeting = greeting_await(scene->engine.loop,
				       conduit_plain(rp[0]), 10 * NS_PER_SEC, &rp_ops, scene);
	return lp[0];
}

static void dial(struct scene *scene)
{
	unsigned int i = 0;

	if (!scene->lp || !session_lacks(scene->lp) || scene->hops >= HOPS)
		return;
	while (!session_lacks_pipe(scene->lp, i))
		i++;
	check(!session_join(scene->lp, i, new_hop(scene)));
}

/* --- applications --- */

static void open_link(struct scene *scene)
{
	struct destination to = destination_ipv4((uint8_t[]){ 192, 0, 2, 1 },
						 (uint16_t)scene->links);
	int fd[2];

	if (!scene->lp || scene->links == LINKS)
		return;
	app_pair(true, fd);
	if (session_open(scene->lp, fd[1], &to, NULL)) {
		close(fd[0]);
		close(fd[1]);
		return;
	}
	link_comes(&scene->link[scene->links++], LP, fd[0]);
}

/* Somebody comes to what RP listens on for LP. */
static void come_to(struct scene *scene, uint16_t listener)
{
	struct destination from = destination_ipv4((uint8_t[]){ 192, 0, 2, 9 },
						   (uint16_t)scene->links);
	struct sockaddr_storage peer = destination_address(&from);
	int fd[2];

	if (!scene->listens[listener] || scene->links == LINKS)
		return;
	app_pair(true, fd);
	if (session_accept(scene->rp, fd[1], listener, &peer)) {
		close(fd[0]);
		close(fd[1]);
		return;
	}
	scene->link[scene->links].opener = RP;
	link_comes(&scene->link[scene->links++], RP, fd[0]);
}

static void ask(struct scene *scene, uint16_t listener)
{
	scene->at[listener] = destination_ipv4((uint8_t[]){ 127, 0, 0, 1 },
					       (uint16_t)(1000 + listener));
	scene->asks[listener] = ASKS_NOW;
	session_listen(scene->lp, listener, &scene->at[listener]);
}

static void take_back(struct scene *scene, uint16_t listener)
{
	if (!scene->listens[listener])
		return;
	scene->listens[listener] = false;
	session_listening(scene->rp, listener, WIRE_LISTENING_LIMIT, 0);
}

static bool reverses(const struct scene *scene)
{
	return scene->lp && scene->rp && session_reverses(scene->lp) &&
	       session_reverses(scene->rp);
}

static void play_listener(struct scene *scene, uint8_t what)
{
	uint16_t listener = (what >> 2) % LISTENERS;

	if ((what & 3) == 0)
		ask(scene, listener);
	else if ((what & 3) == 1)
		take_back(scene, listener);
	else
		come_to(scene, listener);
}

/* LP's user says how a path is to be used; the last that is not off stays. */
static void play_path(struct scene *scene, uint8_t what)
{
	unsigned int number = what & 1, state = (what >> 1) % (WIRE_PATH_OFF + 1);

	if (scene->settings.paths.n < 2 || !scene->lp ||
	    (state == WIRE_PATH_OFF && scene->lp->paths.path[!number].off))
		return;
	session_use_path(scene->lp, number, (uint8_t)state);
}

static void play(struct scene *scene, uint8_t what)
{
	link_play(&scene->link[(what >> 1) % LINKS], what & 1,
		  what / (2 * LINKS));
}

/* --- the program's steps --- */

static void step(struct scene *scene, struct input *in)
{
	static const int32_t spans_ms[] = { 1, 10, 60, 110, 450, 900, 1500, 3000 };
	uint8_t op = input_take(in);
	struct hop *hop = &scene->hop[(op >> 4) % scene->hops];

	switch (op & 15) {
	case 0:
	case 1:
		play(scene, input_take(in));
		break;
	case 2:
		open_link(scene);
		break;
	case 3:
		hop_drop(hop, op >> 7);
		break;
	case 4:
		hop_pass_on(hop, LP);
		hop_pass_on(hop, RP);
		break;
	case 5:
		dial(scene);
		break;
	case 6:
		clock_advance(spans_ms[op >> 5] * NS_PER_MS);
		break;
	case 7:
	case 8:
		hop_carry(hop, LP, 1u << (input_take(in) & 15));
		break;
	case 9:
	case 10:
		hop_carry(hop, RP, 1u << (input_take(in) & 15));
		break;
	case 11:
		hop_carry(hop, LP, HOP_TRANSIT);
		hop_carry(hop, RP, HOP_TRANSIT);
		break;
	case 12:
		if (reverses(scene)) {
			play_listener(scene, input_take(in));
			break;
		}
		/* fall through */
	default:
		if ((op & 15) == 14 && op & 128)
			play_path(scene, input_take(in));
		if (op & 1)
			hinting_play(op & 16 ? scene->lp : scene->rp, in);
		run_round(scene->engine.loop);
	}
}

/* --- all comes to rest --- */

/* A pipe in use whose middle is broken would be noticed some day: now. */
static void be_well(struct scene *scene)
{
	for (unsigned int i = 0; i < scene->hops; i++) {
		struct hop *hop = &scene->hop[i];

		for (int side = 0; side < 2; side++) {
			hop_carry(hop, side, HOP_TRANSIT);
			if (hop->fd[side] < 0)
				hop->len[side] = 0;
			hop_pass_on(hop, !side);
		}
	}
	play_path(scene, WIRE_PATH_USE << 1);
	play_path(scene, WIRE_PATH_USE << 1 | 1);
	dial(scene);
	for (unsigned int i = 0; i < scene->links; i++)
		link_be_well(&scene->link[i]);
	for (uint16_t i = 0; reverses(scene) && i < LISTENERS; i++) {
		if (scene->asks[i] == ASKS_REFUSED)
			ask(scene, i);
	}
}

/* LP has what it asked for. */
static bool all_listen(const struct scene *scene)
{
	for (int i = 0; i < LISTENERS; i++) {
		if (scene->asks[i] == ASKS_NOW || scene->asks[i] == ASKS_REFUSED)
			return false;
	}
	return true;
}

static bool is_in_use(const struct channel *ch)
{
	return ch && ch->use.open;
}

static bool is_at_rest(const struct session *s)
{
	const struct extended *x = s->ext;

	for (unsigned int id = 1; id <= LINKS; id++) {
		if (is_in_use(x->channel[id]) ||
		    is_in_use(x->channel[WIRE_ID_LP_MAX + id]))
			return false;
	}
	return !s->nconns && !x->kept && !keeping_has_again(x) && !s->in.early &&
	       !x->reverse.due;
}

static void check_rest(const struct session *s)
{
	check(!s->in.queued && !s->sched.ready);
	check(!s->ext->promised && !s->ext->pool.limit.used);
	check(!s->ext->pool_of_rp.limit.used && !s->ext->reverse.conns);
	check(!s->counts.protocol && !s->counts.pauses);
}

static uint64_t limits_met(const struct session *s)
{
	return s->counts.queue_limit + s->counts.reorder_limit;
}

static void check_links(struct scene *scene)
{
	uint64_t resets = 0;

	for (unsigned int i = 0; i < scene->links; i++)
		resets += link_check(&scene->link[i]);
	check(resets <= limits_met(scene->lp) + limits_met(scene->rp));
	for (int i = 0; i < LISTENERS; i++)
		check(scene->listens[i] == (scene->asks[i] == ASKS_HAS));
}

static void come_to_rest(struct scene *scene)
{
	for (int i = 0; i < ROUNDS_TO_REST && !scene->ended; i++) {
		be_well(scene);
		run_round(scene->engine.loop);
		clock_advance(20 * NS_PER_MS);
		/* The kernel's TCP has its own clock, and may wait by it. */
		if (i > 300)
			poll(NULL, 0, 1);
		if (scene->lp && scene->rp && is_at_rest(scene->lp) &&
		    is_at_rest(scene->rp) && all_listen(scene)) {
			check_rest(scene->lp);
			check_rest(scene->rp);
			be_well(scene);
			check_links(scene);
			return;
		}
		if (scene->lp && scene->hops == HOPS && session_lacks(scene->lp))
			return;		/* no more of them: it cannot go on */
	}
	check(scene->ended);
}

/* --- a run --- */

/* What goes next, where, and twice. */
static void choose(struct settings *settings, uint8_t how, uint8_t which)
{
	check(!conn_policies[CONN_POLICIES] && !pipe_policies[PIPE_POLICIES] &&
	      !path_policies[PATH_POLICIES]);
	settings->conn_policy = conn_policies[how % CONN_POLICIES];
	settings->pipe_policy = pipe_policies[(how >> 3) % PIPE_POLICIES];
	settings->thin = (enum thin_mode)((how >> 6) % 3);
	settings->path_policy = path_policies[which % PATH_POLICIES];
	settings->path_number = which >> 4 & 1;
	settings->path_share = (which >> 4 & 3) / 4.0;
	if (settings->pipe_policy == &sched_fixed)	/* as options have it */
		settings->path_policy = path_policies[0];
	settings->reinject = (enum reinject_mode)((which >> 6) % 3);
}

static void begin(struct scene *scene, struct input *in)
{
	uint8_t how = input_take(in), policies = input_take(in);

	memset(scene, 0, sizeof(*scene));
	settings_init(&scene->settings);
	scene->settings.seed = 0;
	scene->settings.seed_given = true;
	log_init(&scene->log, "fuzz", LOG_ERROR);
	scene->settings.late = how & 1;
	scene->settings.app_buffer = how & 2 ? 10000 : 0;
	scene->settings.keep = how & 4 ? 100000 : KEEP_MAX;
	scene->settings.window_memory = how & 8 ? 200000 : WINDOW_MEMORY;
	choose(&scene->settings, policies, input_take(in));
	for (int i = 0; i < LINKS; i++)
		link_init(&scene->link[i], i);
	if (how & 128)
		scene->settings.paths = (struct path_set){
			.n = 2,
			.path = { { .pipes = 1 },
				  { .pipes = (how >> 4) % 4,
				    .backup = how & 1 } },
		};
	check(!engine_init(&scene->engine, &scene->settings, &scene->log));
	scene->hello = (struct wire_hello){
		.version = 1, .features = WIRE_FEATURES_VERSION_1 | WIRE_FEATURE_HINT |
					  (how & 2 ? 0 : WIRE_FEATURE_LARGE) |
					  (how & 64 ? WIRE_FEATURE_LISTEN : 0) |
					  (how & 128 ? WIRE_FEATURE_PATH : 0),
		.session = "a session's id.",
		.pipes = (uint8_t)(1 + (how >> 4) % 4),
	};
	scene->first = greeting_say(scene->engine.loop,
				    conduit_plain(new_hop(scene)), &scene->hello, 10 * NS_PER_SEC, &lp_ops,
				    scene);
}

static void stop(struct scene *scene)
{
	if (scene->lp)
		session_stop(scene->lp, "the input ended");
	if (scene->rp)
		session_stop(scene->rp, "the input ended");
	for (unsigned int i = 0; i < scene->hops; i++) {
		hop_drop(&scene->hop[i], LP);
		hop_drop(&scene->hop[i], RP);
	}
	for (int i = 0; scene->lp || scene->rp; i++) {
		check(i < 100);
		run_round(scene->engine.loop);
		clock_advance(LINGER_MS * NS_PER_MS / 40);
	}
}

static void finish(struct scene *scene)
{
	stop(scene);
	greeting_free(scene->first);
	for (unsigned int i = 0; i < scene->hops; i++)
		greeting_free(scene->hop[i].greeting);
	for (int i = 0; i < LINKS; i++)
		link_fini(&scene->link[i]);
	engine_fini(&scene->engine);
	log_fini(&scene->log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scene scene;
	struct input in = { data, size };

	descriptors_begin();
	clock_begin();
	begin(&scene, &in);
	for (int i = 0; in.left && i < STEPS; i++)
		step(&scene, &in);
	come_to_rest(&scene);
	finish(&scene);
	clock_end();
	descriptors_end();
	return 0;
}
