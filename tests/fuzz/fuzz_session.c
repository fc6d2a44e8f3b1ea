/* SPDX-License-Identifier: MIT */
/*
 * A whole session between sockets, fed with whatever comes. The input chooses
 * role, binding and pipes, and is then a program: raw bytes or well-formed
 * messages into a pipe, what applications do, what the peer reads, rounds of
 * the loop, pipes closed, the session stopped.
 *
 * Asserted after each step: the session's books (memory held and queued,
 * connections, who is ready, pausing) are what a walk over all connections
 * gives; what it writes to its pipes is sound baseline, and of the numbers of a
 * connection none comes twice and none behind its FIN. At the end no descriptor
 * is left; leaks are the sanitizer's to find.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mux/base/log.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/session/greeting.h"
#include "mux/session/session_inside.h"
#include "apps.h"
#include "check.h"
#include "framing.h"
#include "input.h"
#include "sockets.h"

enum {
	PIPES = 4,
	IDS = 64,		/* whose numbers are followed */
	NUMBERS = 512,
};

/* The peer's end of a pipe. */
struct far_end {
	int fd;
	struct hearing hearing;
	/* What went into it, counted byte by byte. */
	uint64_t bytes, messages;
	struct framing framing;
};

struct scene {
	struct engine engine;
	struct settings settings;
	struct log log;
	struct session *s;	/* NULL once it ended */
	bool accepts;		/* plays RP */
	unsigned int npipes;
	struct far_end far[PIPES];
	struct apps apps;
	uint8_t seen[IDS][NUMBERS];
	uint32_t fin[IDS];	/* number + 1 of the FIN, 0 before it */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- the two roles --- */

static void on_ended(struct session *s)
{
	struct scene *scene = session_owner(s);

	check(session_why(s)[0]);
	check(list_empty(&s->sched.newcomers) && list_empty(&s->sched.round));
	for (int i = 0; i < SCHED_CLASSES; i++)
		check(list_empty(&s->sched.young[i]));
	check(!s->sched.nyoung);
	scene->s = NULL;
}

static void on_syn(struct session *s, struct conn *c)
{
	struct scene *scene = session_owner(s);

	check(c->had_syn && !c->ended);
	apps_serve(&scene->apps, c);
}

static void on_room(struct session *s)
{
	check(session_has_room(s));
}

static const struct session_role rp_role = {
	.open = on_syn,
	.ended = on_ended,
};

static const struct session_role lp_role = {
	.room = on_room,
	.ended = on_ended,
};

/* --- what the session writes --- */

static void check_message(void *owner, const struct wire_msg *msg)
{
	struct scene *scene = owner;
	uint32_t id = msg->id, number = msg->number;

	check(wire_check(msg, scene->accepts) == WIRE_OK);
	/* RP's ids are used again as the input likes; LP walks its range. */
	if (scene->accepts || id >= IDS || number >= NUMBERS)
		return;
	check(!scene->seen[id][number]);
	scene->seen[id][number] = 1;
	check(!scene->fin[id] || number < scene->fin[id]);
	if (msg->type == WIRE_FIN) {
		check(!scene->fin[id]);
		for (uint32_t n = number + 1; n < NUMBERS; n++)
			check(!scene->seen[id][n]);
		scene->fin[id] = number + 1;
	}
}

static void read_far_end(struct scene *scene, struct far_end *far)
{
	hearing_read(&far->hearing, far->fd, check_message, scene);
}

/* --- the books --- */

static void check_books(const struct session *s)
{
	size_t held = 0, queued = 0;
	unsigned int live = 0, ready = 0, stuck = 0;
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns) {
		const struct conn *c = list_entry(pos, struct conn, member);

		held += reorder_bytes(&c->reorder);
		queued += conn_queued(c);
		live += !c->ended;
		ready += c->ready;
		stuck += c->queue_full;
		check(!c->ready || !c->ended);
		check(!c->ended || !reorder_bytes(&c->reorder));
		check(c->state != CONN_CLOSED || !conn_queued(c));
	}
	check(s->in.early == held && held <= REORDER_MAX_SESSION);
	check(s->in.queued == queued);
	check(s->sched.ready == ready);
	check(s->in.full_queues == stuck);
	check(table_conns(s->table) == live);
	if (!s->dead && !s->stopping)
		check(s->in.paused == (stuck || s->in.full));
	check(s->in.full || queued <= QUEUE_MAX_SESSION);
}

/* What a pipe read whole it counted right. */
static void check_counts(const struct scene *scene)
{
	for (unsigned int i = 0; i < scene->npipes; i++) {
		const struct far_end *far = &scene->far[i];
		const struct pipe *p = scene->s->pipes[i];

		check(p->rx_bytes <= far->bytes);
		check(p->rx_messages <= far->messages);
		if (p->rx_bytes == far->bytes && !scene->s->dead)
			check(p->rx_messages == far->messages);
	}
}

static void run(struct scene *scene)
{
	run_round(scene->engine.loop);
	if (scene->s) {
		check_books(scene->s);
		check_counts(scene);
	}
}

/* --- the program's steps --- */

static void send_to(struct scene *scene, unsigned int pipe, const uint8_t *buf,
		    size_t n)
{
	struct far_end *far = &scene->far[pipe];
	ssize_t sent;

	if (far->fd < 0)
		return;
	sent = send(far->fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (ssize_t i = 0; i < sent; i++) {
		far->bytes++;
		far->messages += framing_ends(&far->framing, buf[i]);
	}
}

static void send_raw(struct scene *scene, unsigned int pipe, struct input *in)
{
	size_t n = input_take(in) & 63;

	n = n < in->left ? n : in->left;
	send_to(scene, pipe, in->at, n);
	in->at += n;
	in->left -= n;
}

/* Few ids and low numbers, so that messages meet; now and then far ones. */
static void send_message(struct scene *scene, unsigned int pipe,
			 struct input *in)
{
	static const uint8_t reasons[] = { 0x88, 0x99, 0x88, 0x77 };
	uint8_t buf[WIRE_MESSAGE_MAX] = { 0 };
	uint8_t kind = input_take(in), where = input_take(in);
	uint16_t id = (uint16_t)(kind >> 2 & 7);
	uint32_t number = where < 250 ? where : (uint32_t)where << 16;
	uint8_t addr[4] = { 192, 0, 2, 7 };
	size_t n;

	switch (kind & 3) {
	case 0:
		n = wire_put_syn(buf, id, addr, where);
		break;
	case 1:
		n = wire_put_fin(buf, id, number, reasons[kind >> 5 & 3]);
		break;
	default:
		n = kind & 0x80 ? WIRE_PAYLOAD_MAX : (size_t)(kind >> 5) + 1;
		n += wire_put_data(buf, id, number, n);
	}
	send_to(scene, pipe, buf, n);
}

static void close_pipe(struct scene *scene, unsigned int pipe)
{
	if (scene->far[pipe].fd >= 0)
		close(scene->far[pipe].fd);
	scene->far[pipe].fd = -1;
}

static void step(struct scene *scene, struct input *in)
{
	uint8_t op = input_take(in);
	unsigned int pipe = (op >> 4) % scene->npipes;

	switch (op & 15) {
	case 0:
		send_raw(scene, pipe, in);
		break;
	case 1:
		apps_play(&scene->apps, input_take(in));
		break;
	case 2:
		read_far_end(scene, &scene->far[pipe]);
		break;
	case 3:
		if (!scene->accepts && scene->s)
			apps_open(&scene->apps, scene->s, 80);
		break;
	case 4:
		if (input_take(in) == 0)
			close_pipe(scene, pipe);
		break;
	case 5:
		if (input_take(in) == 0 && scene->s)
			session_stop(scene->s, "asked to");
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		run(scene);
		break;
	default:
		send_message(scene, pipe, in);
	}
}

/* --- a run --- */

static void begin(struct scene *scene, uint8_t how)
{
	int near[PIPES];

	memset(scene, 0, sizeof(*scene));
	settings_init(&scene->settings);
	scene->settings.seed = 0;	/* the first id is 1 */
	scene->settings.seed_given = true;
	log_init(&scene->log, "fuzz", LOG_ERROR);
	scene->accepts = how & 1;
	scene->settings.late = how & 2;
	scene->settings.app_buffer = how & 4 ? 10000 : 0;
	scene->settings.conn_policy = conn_policies[(how >> 3 & 1) + (how >> 5 & 1)];
	scene->settings.pipe_policy = pipe_policies[how >> 4 & 3];
	scene->npipes = 1 + (how >> 6);
	apps_init(&scene->apps);
	check(!engine_init(&scene->engine, &scene->settings, &scene->log));
	for (unsigned int i = 0; i < scene->npipes; i++) {
		int fd[2];

		/* Late binding asks TCP how a pipe does. */
		stream_pair(scene->settings.late, fd);
		near[i] = fd[0];
		scene->far[i].fd = fd[1];
	}
	scene->s = greet_baseline(&scene->engine,
			       scene->accepts ? &rp_role : &lp_role, scene,
			       "nobody", near, scene->npipes);
	check(scene->s != NULL);
}

static void finish(struct scene *scene)
{
	int64_t deadline = loop_clock() + 2 * LINGER_MS * NS_PER_MS;

	for (unsigned int i = 0; i < scene->npipes; i++) {
		read_far_end(scene, &scene->far[i]);
		close_pipe(scene, i);
	}
	while (scene->s) {
		check(loop_clock() < deadline);
		run(scene);
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
	begin(&scene, input_take(&in));
	while (in.left)
		step(&scene, &in);
	finish(&scene);
	descriptors_end();
	return 0;
}
