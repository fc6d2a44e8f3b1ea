/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/base/sizes.h"
#include "mux/extension/reinject.h"
#include "mux/pipe/carrier.h"
#include "random.h"

enum what { LOOK };

struct model_event {
	int64_t at;
	enum what what;
	unsigned int pipe, conn;
	uint64_t number;	/* of the connection's messages */
	size_t len;
	bool asked, clean;
	int64_t sent_at, left_at;
	size_t held, in_flight;
	int64_t acked_at;
	bool twice;		/* it went, or is, a second time */
	uint32_t again;		/* segments that its pipe had sent again */
	bool behind;		/* something lost */
};

static void pump(struct model *model);

int64_t model_queue(const struct model *model)
{
	return network_queue(&model->network, model->now);
}

/* --- what the engine hears, and when --- */

/* A stamp for each that was acknowledged and asked to be told of. */
static void take_stamps(struct model *model)
{
	unsigned int i;

	/* Figures are always up to date here: so is the time they are of. */
	paths_look(&model->paths, model->now);
	for (i = 0; i < model->stamps; i++) {
		const struct model_event *e = &model->stamp[i];
		struct ack_asked what = {
			.clean = true, .schedule = !e->clean,
			.sent_at = e->sent_at, .left_at = e->left_at,
			.held = e->held, .in_flight = e->in_flight,
			.again = e->again, .behind = e->behind,
		};

		paths_acked(&model->paths, &model->pipe[e->pipe].pipe, &what,
			    e->acked_at, model->now, model->sched.ready > 0);
	}
	model->stamps = 0;
}

static void wakes(void *who, const struct clock_event *e)
{
	struct model *model = who;

	model->now = e->at;
	model->waking = false;
	take_stamps(model);
	pump(model);
}

/* The process has a reason to run: at once, or when it gets a processor. */
static void wake(struct model *model)
{
	struct clock_event e = { .at = model->clock.now, .happen = wakes,
				 .who = model };

	if (model->waking)
		return;
	if (!model->is.late) {
		wakes(model, &e);
		return;
	}
	model->waking = true;
	e.at += random_below(model->chance,
			     (uint32_t)(model->is.late / 1000)) * INT64_C(1000);
	clock_at(&model->clock, e);
}

static void looks(void *who, const struct clock_event *e)
{
	struct model *model = who;

	(void)e;
	model->waits = false;
	wake(model);
}

static void push(struct model *model, struct model_event e)
{
	clock_at(&model->clock, (struct clock_event){ .at = e.at,
		 .happen = looks, .who = model });
}

/* --- pipes --- */

static void set_info(struct model *model, struct model_pipe *p)
{
	struct pipe_info *info = &p->pipe.info;

	info->rate = p->tcp.cwnd * MODEL_MSS / (p->tcp.srtt / 1e9);
	info->cwnd = (uint32_t)p->tcp.cwnd;
	info->rtt_ms = p->tcp.srtt / 1e6;
	info->rttmin_ms = p->tcp.least / 1e6;
	info->patience_ms = (p->tcp.srtt + 4 * p->tcp.rttvar) / 1e6;
	info->unheard_ms = (double)(model->clock.now - p->tcp.heard_at) / 1e6;
	info->timed_out = p->tcp.backoff > 0;
	info->retransmits = (uint32_t)p->tcp.again;
	info->unsent = p->tcp.unsent;
	info->in_flight = p->tcp.flying;
	info->astray = p->tcp.sacked + p->tcp.gone;
	info->stuck = info->in_flight ? 0 : info->unsent;
	pipe_look_closely(&p->pipe, model->now);
}

static struct model_event *message(struct model_pipe *p, uint64_t number)
{
	return &p->message[number % p->room];
}

static void has_left(void *who, uint64_t number)
{
	struct model_pipe *p = who;

	struct model_event *e = message(p, number);

	if (e->clean)
		return;
	e->left_at = p->tcp.clock->now;
	e->in_flight = path_in_flight(p->pipe.path);
}

/* In the order in which they were sent: those that come too soon wait. */
static void arrives(struct model_conn *c, uint64_t number, int64_t now)
{
	c->message[number % c->room].arrived_at = now;
	for (; c->expects < c->messages; c->expects++) {
		const struct model_message *m =
			&c->message[c->expects % c->room];

		if (!m->arrived_at)
			return;
		hist_add(&c->waited, (now - m->arrived_at) / 1000);
		hist_add(&c->took, (now - m->sent_at) / 1000);
	}
}

static void delivered(void *who, uint64_t number)
{
	struct model_pipe *p = who;
	const struct model_event *e = message(p, number);
	struct model_conn *c = &p->model->conn[e->conn];

	if (e->number < c->expects ||
	    c->message[e->number % c->room].arrived_at)
		return;
	p->model->arrived += e->len;
	c->arrived += e->len;
	arrives(c, e->number, p->tcp.clock->now);
	if (c->arrived == c->sent && !c->backlog)
		c->done_at = p->tcp.clock->now;
}

static void acked(void *who, uint64_t number)
{
	struct model_pipe *p = who;
	struct model *model = p->model;
	struct model_event *e = message(p, number);

	if (!e->asked || (model->is.lost_stamps > 0 &&
			  random_below(model->chance, 1000000) <
			  model->is.lost_stamps * 1e6))
		return;
	e->acked_at = model->clock.now;
	if (model->stamps < MODEL_STAMPS)
		model->stamp[model->stamps++] = *e;
}

/* An acknowledgement: epoll wakes up for stamps, and for room. */
static void told(void *who)
{
	struct model_pipe *p = who;
	struct model *model = p->model;
	bool blocked = !pipe_room(&p->pipe);

	set_info(model, p);
	p->pipe.doubtful = false;
	if (model->stamps || (blocked && pipe_room(&p->pipe)))
		wake(model);
}

static const struct tcp_ops ops = {
	.left = has_left, .delivered = delivered, .acked = acked, .told = told,
};

static void write_message(struct model *model, struct model_pipe *p,
			  struct model_event e)
{
	uint64_t number = p->tcp.end;

	e.again = p->pipe.info.retransmits;
	e.behind = p->pipe.info.astray > 0;
	p->message = ring_for(p->message, sizeof(e), &p->room, p->tcp.first,
			      number);
	*message(p, number) = e;
	tcp_write(&p->tcp, e.len);
	tcp_push(&p->tcp);
	set_info(model, p);
}

void model_rivals(struct model *model, unsigned int n, enum tcp_cc cc)
{
	rivals_set(&model->rivals, n, cc, &model->clock, &model->network);
}

void model_rival(struct model *model, bool on)
{
	model_rivals(model, on, TCP_CUBIC);
}

/* --- the engine --- */

/* What a look would ask the kernel for is there already. */
static void look(struct pipe *p)
{
	(void)p;
}

static const struct carrier carrier = {
	.look = look, .look_at_queues = look, .allow = look,
};

/* Never may a message wait while a pipe could send. */
static void assert_none_waits(const struct model *model)
{
	unsigned int i;

	for (i = 0; i < model->is.pipes; i++)
		assert_int_equal(pipe_room(model->paths.pipes[i]), 0);
}

static void served(struct model *model, struct model_conn *c, size_t len)
{
	int64_t waited = model->now - c->served_at;
	unsigned int i;

	if (waited > c->longest_wait)
		c->longest_wait = waited;
	c->served_at = model->now;
	c->message = ring_for(c->message, sizeof(*c->message), &c->room,
			      c->expects, c->messages);
	c->message[c->messages++ % c->room] =
		(struct model_message){ .sent_at = model->now };
	c->sent += len;
	c->lately += len;
	if (c->backlog != UINT64_MAX) {
		c->backlog -= len;
		return;
	}
	for (i = 0; i < model->offered; i++) {
		const struct model_conn *o = &model->conn[i];

		if (o->backlog == UINT64_MAX && c->lately > o->lately &&
		    c->lately - o->lately > model->unfair)
			model->unfair = c->lately - o->lately;
	}
}

static void mind_overshoot(struct model *model, const struct pipe *pipe,
			   size_t before, size_t len)
{
	size_t limit = pipe->path->aggregate.limit;

	assert_true(before < limit);
	if (before + len > limit && before + len - limit > model->overshoot)
		model->overshoot = before + len - limit;
}

static void give(struct model *model, struct pipe *pipe, struct model_event e)
{
	size_t before;

	if (model->is.datagrams)
		pipe->path->passing.datagram_at = model->now;
	e.asked = paths_send(&model->paths, pipe, e.len, model->now, &before);
	mind_overshoot(model, pipe, before, e.len);
	e.held = before + e.len;
	pipe->tx_messages++;
	pipe->tx_bytes += e.len;
	model->written += e.len;
	write_message(model, &model->pipe[pipe->index], e);
}

/* One message of what was decided: a session's send_run(), without sockets. */
static void send_one(struct model *model, const struct next *next)
{
	struct pipe *pipe = next->pipe;
	struct model_conn *c = container_of(next->conn, struct model_conn,
					    conn);
	struct model_event e = {
		.pipe = pipe->index,
		.conn = (unsigned int)(c - model->conn),
		.sent_at = model->now, .left_at = model->now,
	};

	e.len = size_least(next->payload, next->bytes);
	if (c->backlog < e.len)
		e.len = c->backlog;
	e.clean = pipe_is_clear(pipe);
	e.number = c->messages;
	served(model, c, e.len);
	if (!c->backlog) {
		c->conn.ready = false;
		sched_idle(&model->sched, &c->conn, model->now);
	}
	model->sched.conns->sent(&model->sched, &c->conn, e.len);
	thin_sent(&model->paths, &c->conn, pipe, e.len);
	give(model, pipe, e);
}

/* --- what goes again --- */

/* The oldest that is not acknowledged and went once; NULL: there is none. */
static struct model_event *head_of(struct model_pipe *p)
{
	uint64_t number = p->tcp.first;

	while (number < p->tcp.end && message(p, number)->twice)
		number++;
	return number < p->tcp.end ? message(p, number) : NULL;
}

static struct reinject_head tell(struct model_pipe *p)
{
	const struct pipe_info *info = &p->pipe.info;
	const struct model_event *e = head_of(p);

	if (!e)
		return (struct reinject_head){ .there = false };
	return (struct reinject_head){
		.there = true, .sent_at = e->sent_at,
		.timed_out = info->timed_out,
		.tail = {
			.outstanding = pipe_outstanding(&p->pipe),
			.in_flight = info->in_flight,
			.astray = info->astray,
			.segment = MODEL_MSS, .heard_at = p->tcp.heard_at,
			.round_trip = (int64_t)p->tcp.srtt,
			.patience = (int64_t)(info->patience_ms * NS_PER_MS),
		},
	};
}

static void looks_again(void *who, const struct clock_event *e)
{
	struct model *model = who;

	(void)e;
	model->looks_again = false;
	wake(model);
}

static void look_again_at(struct model *model, int64_t at)
{
	if (model->looks_again || at == TAIL_NEVER)
		return;
	model->looks_again = true;
	clock_at(&model->clock, (struct clock_event){ .at = at,
		 .happen = looks_again, .who = model });
}

static bool lives(struct model *model, const struct path *path)
{
	for (unsigned int i = 0; i < model->is.pipes; i++) {
		struct model_pipe *p = &model->pipe[i];

		if (p->pipe.path == path &&
		    reinject_path_lives(p->tcp.heard_at, (int64_t)p->tcp.srtt,
					model->now))
			return true;
	}
	return false;
}

/* As in the session: bits. */
static uint8_t paths_for(struct model *model, const struct model_pipe *of)
{
	uint8_t all = 0, others;

	for (unsigned int i = 0; i < model->is.pipes; i++) {
		const struct pipe *p = &model->pipe[i].pipe;

		if (p != &of->pipe && !p->doubtful)
			all |= (uint8_t)(1 << p->path->number);
	}
	others = all & (uint8_t)~(1U << of->pipe.path->number);
	return others && !lives(model, of->pipe.path) ? others : all;
}

/* As the session tells the decision. */
static void look_for_heads(struct model *model, struct view *view)
{
	struct reinject_head head[PIPES_MAX];
	int64_t look_at;
	int best;

	view->repeat = false;
	if (model->is.reinject == REINJECT_OFF)
		return;
	for (unsigned int i = 0; i < model->is.pipes; i++)
		head[i] = tell(&model->pipe[i]);
	best = reinject_pick(model->is.reinject, false, head, model->is.pipes,
			     model->now, &look_at);
	view->repeat = best >= 0 && reinject_affords(model->written,
						     model->again, MODEL_MSS);
	if (best < 0) {
		look_again_at(model, look_at);
		return;
	}
	view->repeat_of = &model->pipe[best].pipe;
	view->repeat_paths = paths_for(model, &model->pipe[best]);
	view->repeat_ahead = model->is.reinject == REINJECT_MPFLEX;
	model->pipe[best].pipe.doubtful = true;
}

static void send_again(struct model *model, const struct pipe *of,
		       struct pipe *pipe)
{
	struct model_event *head = head_of(&model->pipe[of->index]), e;

	assert_ptr_not_equal(of, pipe);
	head->twice = true;
	e = *head;
	e.pipe = pipe->index;
	e.sent_at = e.left_at = model->now;
	e.clean = pipe_is_clear(pipe);
	model->again += e.len;
	give(model, pipe, e);
}

static void pump(struct model *model)
{
	struct view view = {
		.sched = &model->sched, .paths = &model->paths,
		.now = model->now,
		.scatters = model->settings.thin == THIN_OFF,
	};
	struct next next;

	paths_look(&model->paths, model->now);
	for (;;) {
		look_for_heads(model, &view);
		next = sched_next(&view);
		if (next.act == NEXT_WAIT)
			break;
		if (next.act == NEXT_REPEAT)
			send_again(model, view.repeat_of, next.pipe);
		else
			send_one(model, &next);
	}
	if (next.wait == WAIT_FOR_PIPES && model->paths.npaths == 1 &&
	    model->is.reinject == REINJECT_OFF)
		assert_none_waits(model);
	if (next.until == NEXT_NEVER || model->waits)
		return;
	model->waits = true;
	push(model, (struct model_event){ .what = LOOK, .at = next.until });
}

/* --- life --- */

static void init_pipe(struct model *model, unsigned int i)
{
	struct model_pipe *p = &model->pipe[i];
	unsigned int path = model->is.paths * i / model->is.pipes;

	p->model = model;
	p->pipe.index = i;
	p->pipe.settings = &model->settings;
	p->pipe.carrier = &carrier;
	p->pipe.info.mss = MODEL_MSS;
	tcp_init(&p->tcp, &model->clock,
		 path && model->is.second ? &model->second : &model->network,
		 model->is.cc, model->is.delayed_acks, &ops, p);
	p->tcp.prompt = model->is.datagrams;
	set_info(model, p);
	paths_add(&model->paths, path, &p->pipe);
}

void model_init(struct model *model, const struct model_params *params,
	       struct random *chance)
{
	unsigned int i;

	memset(model, 0, sizeof(*model));
	model->is = *params;
	model->chance = chance;
	model->now = model->clock.now = NS_PER_SEC;
	model->settings.late = true;
	model->stamp = calloc(MODEL_STAMPS, sizeof(*model->stamp));
	assert_non_null(model->stamp);
	network_init(&model->network, &model->is, chance);
	network_init(&model->second, model->is.second, chance);
	if (model->is.one_queue)
		model->second.through = &model->network;
	sched_init(&model->sched, conn_policies[0], params->policy,
		   params->pipes, 1);
	for (i = 0; i < PATHS_MAX; i++)
		aggregate_init(&model->paths.path[i].aggregate, params->mode, 2,
			       model->now);
	for (i = 0; i < params->pipes; i++)
		init_pipe(model, i);
	for (i = 0; i < MODEL_CONNS; i++) {
		model->conn[i].conn.id = (uint16_t)(i + 1);
		list_init(&model->conn[i].conn.turn);
		list_init(&model->conn[i].conn.ahead);
	}
}

void model_fini(struct model *model)
{
	unsigned int i;

	for (i = 0; i < model->is.pipes; i++) {
		free(model->pipe[i].message);
		tcp_fini(&model->pipe[i].tcp);
	}
	for (i = 0; i < MODEL_CONNS; i++)
		free(model->conn[i].message);
	rivals_fini(&model->rivals);
	free(model->stamp);
	clock_fini(&model->clock);
}

void model_offer(struct model *model, unsigned int i, uint64_t bytes)
{
	struct model_conn *c = &model->conn[i];

	if (i >= model->offered)
		model->offered = i + 1;
	c->backlog = bytes == UINT64_MAX ? bytes : c->backlog + bytes;
	c->done_at = 0;
	if (!c->conn.ready) {
		c->conn.ready = true;
		c->served_at = model->now;
		sched_ready(&model->sched, &c->conn, model->now);
	}
	wake(model);
}

void model_forget(struct model *model)
{
	unsigned int i;

	model->arrived = model->network.dropped = 0;
	model->network.longest = 0;
	model->overshoot = model->unfair = 0;
	for (i = 0; i < MODEL_CONNS; i++) {
		hist_init(&model->conn[i].waited);
		hist_init(&model->conn[i].took);
		model->conn[i].longest_wait = 0;
		model->conn[i].lately = 0;
	}
}

void model_run(struct model *model, int64_t ns)
{
	int64_t until = model->clock.now + ns;

	do {
		if (model->clock.events && model->clock.heap[0].at <= until)
			model->now = model->clock.heap[0].at;
	} while (clock_step(&model->clock, until));
	model->now = model->clock.now = until;
}
