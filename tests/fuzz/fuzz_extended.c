/* SPDX-License-Identifier: MIT */
/*
 * A whole session of the extension, LP's or RP's, against a peer that says
 * whatever comes. The input chooses role and settings, and is then a program:
 * raw bytes or well-formed messages into a pipe, what applications do, what the
 * peer reads, pipes that end and are dialled again, rounds of the loop, time
 * that goes by.
 *
 * Asserted after each round: the session's books are true (ext_books.h).
 * Asserted of what the session writes: it is sound and of the right way; a number
 * of an id never comes twice with another message; in their order the messages
 * of an id are uses, one behind the other; an ACK never tells of more than was
 * said; and payload stays within what the peer granted.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mux/base/log.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/session/extended.h"
#include "mux/session/flow.h"
#include "apps.h"
#include "check.h"
#include "clock.h"
#include "ext_books.h"
#include "ext_peer.h"
#include "input.h"
#include "sockets.h"

enum {
	FLOWS = 6,
	FEATURES = WIRE_FEATURES_VERSION_1 | WIRE_FEATURES_FLOWS |
		   WIRE_FEATURE_HINT | WIRE_FEATURE_LISTEN | WIRE_FEATURE_PATH,
};

struct scene {
	struct engine engine;
	struct settings settings;
	struct log log;
	struct session *s;	/* NULL once it ended */
	bool accepts;		/* plays RP */
	struct ext_peer peer;
	struct apps apps;
	struct flow *flow[FLOWS];	/* NULL where there is none */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- the two roles --- */

static void on_ended(struct session *s)
{
	struct scene *scene = session_owner(s);

	check(session_why(s)[0]);
	check(list_empty(&s->sched.newcomers) && list_empty(&s->sched.round));
	scene->s = NULL;
}

static void on_room(struct session *s)
{
	(void)s;
}

static void on_open(struct session *s, struct conn *c)
{
	struct scene *scene = session_owner(s);

	check(c->had_syn && !c->ended);
	apps_serve(&scene->apps, c);
}

/* One that was asked for gets its socket now. */
static void on_answered(struct session *s, struct conn *c, uint8_t result)
{
	struct scene *scene = session_owner(s);
	int *app = apps_place(&scene->apps);
	int fd[2];

	if (!c->asker || result != WIRE_SYNACK_CONNECTED)
		return;
	c->asker = NULL;
	if (!app) {
		conn_reset(c, CONN_END_LOCAL_RESET);
		return;
	}
	app_pair(false, fd);
	*app = fd[0];
	conn_attach(c, fd[1]);
}

/* --- flows of datagrams --- */

static struct flow **place_of(struct scene *scene, const struct flow *f)
{
	for (int i = 0; i < FLOWS; i++) {
		if (scene->flow[i] == f)
			return &scene->flow[i];
	}
	return NULL;
}

/* Every other one is answered with what came, which says where it was to go. */
static void flow_came(struct flow *f, const struct destination *at,
		      const uint8_t *payload, size_t len)
{
	const struct destination *to = at->kind ? at : NULL;
	struct scene *scene = flow_owner(f);

	check(destination_is_sound(at));
	check(!to == (flow_to(f)->kind != DESTINATION_NONE));
	check(place_of(scene, f) != NULL);
	if (len % 2)
		flow_send(f, to, payload, len);
	/* LP only hears of a path's MTU. */
	if (scene->accepts && flow_is_whole(f, at))
		flow_tell_mtu(f, (unsigned int)len);
}

static void flow_ended(struct flow *f)
{
	struct flow **place = place_of(flow_owner(f), f);

	check(place != NULL);
	*place = NULL;
}

static void flow_told_mtu(struct flow *f, unsigned int mtu)
{
	check(place_of(flow_owner(f), f) != NULL);
	check(flow_tells_mtu(f) && mtu >= 68 && mtu <= UINT16_MAX);
}

static const struct flow_ops flow_ops = {
	.came = flow_came, .ended = flow_ended, .told_mtu = flow_told_mtu,
};

static void on_open_flow(struct session *s, struct conn *c)
{
	struct scene *scene = session_owner(s);
	struct flow **place = place_of(scene, NULL);

	check(c->had_syn && !c->ended && c->flow);
	if (!place || c->dst->port % 8 == 0) {
		conn_reset(c, CONN_END_DENIED);
		return;
	}
	*place = flow_take(c, &flow_ops, scene);
	if (c->dst->port % 8 != 1)
		flow_answer(*place);
}

static void play_flow(struct scene *scene, uint8_t what)
{
	static const uint8_t bytes[WIRE_PAYLOAD_MAX + 1];
	struct destination to = destination_name("x", 1, what & 16 ? 53 : 7);
	const struct destination any = { .kind = DESTINATION_NONE };
	struct flow **place = &scene->flow[what % FLOWS];
	struct flow *f = *place;

	if (!f && !scene->accepts && scene->s) {
		*place = flow_open(scene->s, what & 16 ? &to : &any, &flow_ops,
				   scene);
		return;
	}
	if (!f)
		return;
	if (what >= 240) {
		*place = NULL;
		flow_close(f);
		return;
	}
	if (scene->accepts && (what & 192) == 192)
		flow_answer(f);
	if (scene->accepts && what & 8)
		flow_tell_mtu(f, what << 4);
	flow_send(f, flow_to(f)->kind ? &flow_whole : &to, bytes,
		  what & 32 ? what : WIRE_PAYLOAD_MAX + 1 - (what & 15));
}

/* --- what RP listens for --- */

static void on_listen(struct session *s, uint16_t listener,
		      const struct destination *at)
{
	check(listener < LISTENERS_MAX && destination_is_sound(at));
	session_listening(s, listener, at->port % 3, at->port);
}

static void on_listening(struct session *s, uint16_t listener, uint8_t result,
			 uint16_t port)
{
	(void)s;
	(void)result;
	(void)port;
	check(listener < LISTENERS_MAX);
}

static void on_accepted(struct session *s, struct conn *c)
{
	struct scene *scene = session_owner(s);

	check(!scene->accepts && !c->ended && destination_is_listener(c->dst));
	apps_serve(&scene->apps, c);
}

static void play_listener(struct scene *scene, uint8_t what)
{
	static const struct destination at = { DESTINATION_IPV4, 4, 7000, { 127, 0, 0, 1 } };
	struct sockaddr_storage peer = { .ss_family = AF_INET };
	int *app = apps_place(&scene->apps);
	int fd[2];

	if (!scene->s || !session_reverses(scene->s))
		return;
	if (!scene->accepts) {
		session_listen(scene->s, what % LISTENERS_MAX, &at);
	} else if (app) {
		app_pair(false, fd);
		*app = fd[0];
		if (session_accept(scene->s, fd[1], what, &peer))
			close(fd[1]);
	}
}

static const struct session_role rp_role = {
	.open = on_open,
	.open_flow = on_open_flow,
	.listen = on_listen,
	.ended = on_ended,
};

static const struct session_role lp_role = {
	.answered = on_answered,
	.listening = on_listening,
	.accepted = on_accepted,
	.room = on_room,
	.ended = on_ended,
};

static void ask(struct scene *scene)
{
	struct destination to = destination_name("x.example", 9, 80);
	struct conn *c = session_ask(scene->s, &to);

	if (c)
		c->asker = scene;
}

/* Who asked leaves before there was an answer. */
static void leave(struct scene *scene)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &scene->s->conns) {
		struct conn *c = list_entry(pos, struct conn, member);

		if (!c->asker)
			continue;
		c->asker = NULL;
		conn_reset(c, CONN_END_LOCAL_RESET);
		return;
	}
}

static void play_lp(struct scene *scene, uint8_t what)
{
	if (!scene->s || scene->accepts)
		return;
	if (what % 4 == 0)
		ask(scene);
	else if (what % 4 == 1)
		leave(scene);
	else
		apps_open(&scene->apps, scene->s, 80);
}

static void run(struct scene *scene)
{
	run_round(scene->engine.loop);
	if (scene->s && !scene->s->dead)
		ext_books_check(scene->s);
}

/* --- pipes come and go --- */

static void dial_rp(struct scene *scene, unsigned int i, uint8_t how)
{
	struct far_end *far = &scene->peer.far[i];
	struct wire_hello hello = scene->peer.hello;
	int fd[2];

	hello.pipe = (uint8_t)i;
	hello.pipes = (uint8_t)(hello.pipes + (how == 255));
	hello.incarnation = far->incarnation + (how != 254);
	hello.path = how & 7;
	hello.path_flags = how >> 3 & 1;
	stream_pair(scene->settings.late, fd);
	if (greet_join(scene->s, &hello, conduit_plain(fd[0]))) {
		far_close(far);
		far_begin(far, fd[1], hello.incarnation);
	} else {
		close(fd[1]);
	}
}

static void dial_lp(struct scene *scene)
{
	struct session *s = scene->s;
	unsigned int i = 0;
	int fd[2];

	if (!session_lacks(s))
		return;
	while (!session_lacks_pipe(s, i))
		i++;
	stream_pair(scene->settings.late, fd);
	check(!session_join(s, i, fd[0]));
	far_close(&scene->peer.far[i]);
	far_begin(&scene->peer.far[i], fd[1], s->ext->leg[i].incarnation);
	scene->peer.far[i].joining = true;
}

static void change_pipe(struct scene *scene, unsigned int i, uint8_t how)
{
	if (how < 50)
		far_close(&scene->peer.far[i]);
	else if (!scene->s || scene->s->dead || scene->s->stopping)
		return;
	else if (scene->accepts)
		dial_rp(scene, i, how);
	else
		dial_lp(scene);
}

/* --- the program's steps --- */

static const int32_t spans_ms[] = { 1, 10, 55, 110, 460, 1100, 5100, 16000, 31000, 121000 };

static void step(struct scene *scene, struct input *in)
{
	uint8_t op = input_take(in);
	struct far_end *far = &scene->peer.far[(op >> 4) % scene->peer.npipes];

	switch (op & 15) {
	case 0:
		peer_says_raw(&scene->peer, far, in);
		break;
	case 1:
	case 2:
		apps_play(&scene->apps, input_take(in));
		break;
	case 3:
		if (op & 0x80)
			play_flow(scene, input_take(in));
		else if (op & 0x40)
			play_listener(scene, input_take(in));
		else
			play_lp(scene, op >> 4);
		break;
	case 4:
		change_pipe(scene, (op >> 4) % scene->peer.npipes, input_take(in));
		break;
	case 5:
		if (input_take(in) == 0 && scene->s)
			session_stop(scene->s, "asked to");
		break;
	case 6:
		clock_advance(spans_ms[input_take(in) % 10] * NS_PER_MS);
		break;
	case 7:
	case 8:
		peer_hears(&scene->peer, far);
		break;
	case 9:
	case 10:
		run(scene);
		break;
	case 11:
	case 12:
		peer_says_control(&scene->peer, far, in);
		break;
	default:
		peer_says_numbered(&scene->peer, far, in);
	}
}

/* --- a run --- */

static void settle_settings(struct scene *scene, uint8_t how)
{
	settings_init(&scene->settings);
	scene->settings.seed = 0;
	scene->settings.seed_given = true;
	scene->settings.late = how & 2;
	scene->settings.app_buffer = how & 4 ? 10000 : 0;
	scene->settings.window_memory = how & 8 ? 200000 : WINDOW_MEMORY;
	scene->settings.keep = how & 16 ? 150000 : KEEP_MAX;
	scene->settings.max_conns = how & 32 ? 3 : 100;
}

static void start(struct scene *scene, int fd)
{
	uint32_t features = FEATURES | (scene->peer.large ? WIRE_FEATURE_LARGE : 0);
	struct wire_welcome welcome = {
		.version = 1, .features = features,
		.connections = 5, .conn_early = EARLY_CONN,
		.session_early = 1 << 20, .wait_s = 10,
	};

	scene->peer.hello = (struct wire_hello){
		.version = 1, .features = features,
		.session = "a session's id.", .pipes = (uint8_t)scene->peer.npipes,
	};
	scene->s = scene->accepts ?
		greet_new(&scene->engine, &rp_role, scene, "nobody",
			  &scene->peer.hello, conduit_plain(fd)) :
		greet_welcomed(&scene->engine, &lp_role, scene, "nobody",
			       &scene->peer.hello, &welcome,
			       conduit_plain(fd));
	check(scene->s != NULL);
	check(scene->s->shared.large == scene->peer.large);
}

static void two_paths(struct path_set *set, unsigned int pipes)
{
	set->n = 2;
	set->path[0].pipes = 1;
	set->path[1].pipes = pipes - 1;
	set->path[1].backup = pipes == PIPES;
}

static void begin(struct scene *scene, uint8_t how)
{
	int fd[2];

	memset(scene, 0, sizeof(*scene));
	log_init(&scene->log, "fuzz", LOG_ERROR);
	settle_settings(scene, how);
	scene->accepts = scene->peer.hears_rp = how & 1;
	scene->peer.npipes = 1 + (how >> 6) % PIPES;
	if (scene->peer.npipes > 1)
		two_paths(&scene->settings.paths, scene->peer.npipes);
	apps_init(&scene->apps);
	check(!engine_init(&scene->engine, &scene->settings, &scene->log));
	scene->peer.large = !(how & 32);	/* and has few connections where it is not */
	for (int i = 0; i < PIPES; i++) {
		struct far_end *far = &scene->peer.far[i];

		far->fd = -1;
		far->hearing.large = far->framing.large = scene->peer.large;
	}
	stream_pair(scene->settings.late, fd);
	far_begin(&scene->peer.far[0], fd[1], 0);
	start(scene, fd[0]);
}

static void finish(struct scene *scene)
{
	for (unsigned int i = 0; i < scene->peer.npipes; i++)
		peer_hears(&scene->peer, &scene->peer.far[i]);
	peer_checks(&scene->peer);
	if (scene->s)
		session_stop(scene->s, "the input ended");
	for (int i = 0; i < PIPES; i++)
		far_close(&scene->peer.far[i]);
	for (int i = 0; scene->s; i++) {
		check(i < 100);
		run(scene);
		clock_advance(LINGER_MS * NS_PER_MS / 40);
	}
	apps_fini(&scene->apps);
	engine_fini(&scene->engine);
	log_fini(&scene->log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scene scene;
	struct input in = { data, size };

	descriptors_begin();
	clock_begin();
	begin(&scene, input_take(&in));
	while (in.left)
		step(&scene, &in);
	finish(&scene);
	clock_end();
	descriptors_end();
	return 0;
}
