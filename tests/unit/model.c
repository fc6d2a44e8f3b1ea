/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/pipe/carrier.h"
#include "random.h"

#define DELAYED_ACK (40 * NS_PER_MS)

enum { WAITING = 1024 };	/* messages in a socket, at most */

enum what { ARRIVAL, ACK, LOST, ACK_TIMER, RIVAL_ACK, RIVAL_LOST, LOOK };

struct model_event {
	int64_t at;
	uint64_t order;
	enum what what;
	unsigned int pipe, conn;
	size_t len;
	bool asked, clean;
	int64_t sent_at, left_at;
	size_t held;
	uint64_t number;	/* of a delayed acknowledgement */
};

static void pump(struct model *model);

/* --- events --- */

static bool before(const struct model_event *a, const struct model_event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void swap(struct model_event *a, struct model_event *b)
{
	struct model_event t = *a;

	*a = *b;
	*b = t;
}

static void push(struct model *model, struct model_event e)
{
	unsigned int i;

	if (model->events == model->room) {
		model->room = model->room ? 2 * model->room : 256;
		model->heap = realloc(model->heap,
				     model->room * sizeof(*model->heap));
		assert_non_null(model->heap);
	}
	e.order = model->order++;
	i = model->events++;
	model->heap[i] = e;
	for (; i && before(&model->heap[i], &model->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap(&model->heap[i], &model->heap[(i - 1) / 2]);
}

static struct model_event pop(struct model *model)
{
	struct model_event first = model->heap[0];
	unsigned int i = 0, c;

	model->heap[0] = model->heap[--model->events];
	while ((c = 2 * i + 1) < model->events) {
		if (c + 1 < model->events &&
		    before(&model->heap[c + 1], &model->heap[c]))
			c++;
		if (before(&model->heap[i], &model->heap[c]))
			break;
		swap(&model->heap[i], &model->heap[c]);
		i = c;
	}
	return first;
}

/* --- the bottleneck --- */

int64_t model_queue(const struct model *model)
{
	return model->busy_until > model->now ? model->busy_until - model->now : 0;
}

/* When the last bit has passed, or -1: there is no room. */
static int64_t pass(struct model *model, size_t len)
{
	double waits = (double)model_queue(model) / 1e9 * model->is.rate;

	if (waits + (double)len > (double)model->is.queue) {
		model->dropped++;
		return -1;
	}
	if (model->busy_until < model->now)
		model->busy_until = model->now;
	model->busy_until += (int64_t)((double)len / model->is.rate * 1e9);
	if (model_queue(model) > model->longest_queue)
		model->longest_queue = model_queue(model);
	return model->busy_until;
}

static bool is_unlucky(struct model *model)
{
	return model->is.loss > 0 &&
	       random_below(model->chance, 1000000) < model->is.loss * 1e6;
}

/* --- pipes --- */

static void set_info(struct model *model, struct model_pipe *p)
{
	struct pipe_info *info = &p->pipe.info;

	info->rate = p->cwnd * MODEL_MSS / (p->srtt / 1e9);
	info->cwnd = (uint32_t)p->cwnd;
	info->rtt_ms = p->srtt / 1e6;
	info->rttmin_ms = (double)model->is.rtt / 1e6;
	pipe_look_closely(&p->pipe, model->now);
}

static bool window_open(const struct model_pipe *p, size_t len)
{
	return p->pipe.info.in_flight + len <= (size_t)(p->cwnd * MODEL_MSS);
}

static void leave(struct model *model, struct model_event e)
{
	int64_t passed = is_unlucky(model) ? -1 : pass(model, e.len);

	model->pipe[e.pipe].pipe.info.in_flight += e.len;
	if (!e.clean)
		e.left_at = model->now;
	if (passed < 0) {
		e.what = LOST;
		e.at = model->now + model->is.rtt + model_queue(model);
	} else {
		e.what = ARRIVAL;
		e.at = passed + model->is.rtt / 2;
	}
	push(model, e);
}

static void flush(struct model *model, struct model_pipe *p)
{
	while (p->count && window_open(p, p->waiting[p->first].len)) {
		p->pipe.info.unsent -= p->waiting[p->first].len;
		leave(model, p->waiting[p->first]);
		p->first = (p->first + 1) % WAITING;
		p->count--;
	}
}

static void write_message(struct model *model, struct model_pipe *p,
			  struct model_event e)
{
	assert_true(p->count < WAITING);
	p->waiting[(p->first + p->count++) % WAITING] = e;
	p->pipe.info.unsent += e.len;
	flush(model, p);
}

static void opens(struct model *model, struct model_pipe *p, size_t len)
{
	bool used = p->pipe.info.in_flight + p->pipe.info.unsent +
		2 * MODEL_MSS > (size_t)(p->cwnd * MODEL_MSS) / 2;

	if (used && p->cwnd < p->ssthresh)
		p->cwnd += (double)len / MODEL_MSS;
	else if (used && p->count)
		p->cwnd += (double)len / MODEL_MSS / p->cwnd;
	set_info(model, p);
}

static void halve(struct model *model, struct model_pipe *p)
{
	if (model->now - p->halved_at < model->is.rtt)
		return;
	p->halved_at = model->now;
	p->cwnd = p->ssthresh = p->cwnd > 4 ? p->cwnd / 2 : 2;
	set_info(model, p);
}

static void acknowledged(struct model *model, const struct model_event *e)
{
	struct model_pipe *p = &model->pipe[e->pipe];
	struct ack_asked what = {
		.clean = true, .schedule = !e->clean,
		.sent_at = e->sent_at, .left_at = e->left_at,
		.before = e->held - e->len, .held = e->held,
	};

	p->srtt += ((double)(model->now - e->left_at) - p->srtt) / 8;
	p->pipe.info.in_flight -= e->len;
	opens(model, p, e->len);
	/* Figures are always up to date here: so is the time they are of. */
	path_look(&model->path, model->now);
	if (e->asked)
		path_acked(&model->path, &p->pipe, &what, model->now,
			   model->now, model->sched.ready > 0);
	flush(model, p);
	pump(model);
}

/* --- the receiver --- */

static void acknowledge(struct model *model, struct model_event e)
{
	e.what = ACK;
	e.at = model->now + model->is.rtt / 2;
	push(model, e);
}

static void arrived(struct model *model, struct model_event e)
{
	struct model_pipe *p = &model->pipe[e.pipe];
	struct model_conn *c = &model->conn[e.conn];

	model->arrived += e.len;
	c->arrived += e.len;
	if (c->arrived == c->sent && !c->backlog)
		c->done_at = model->now;
	if (!model->is.delayed_acks || p->owed_number % 2) {
		if (p->owed_number++ % 2)
			acknowledge(model, *p->owed);
		acknowledge(model, e);
		return;
	}
	*p->owed = e;
	e.what = ACK_TIMER;
	e.number = ++p->owed_number;
	e.at = model->now + DELAYED_ACK;
	push(model, e);
}

static void delay_is_over(struct model *model, const struct model_event *e)
{
	struct model_pipe *p = &model->pipe[e->pipe];

	if (p->owed_number != e->number)
		return;
	p->owed_number++;
	acknowledge(model, *p->owed);
}

/* --- another's connection --- */

static void rival_sends(struct model *model)
{
	while (model->rival.on &&
	       model->rival.in_flight + 1 <= (unsigned int)model->rival.cwnd) {
		int64_t passed = pass(model, MODEL_MSS);
		struct model_event e = { .what = RIVAL_ACK };

		e.at = passed + model->is.rtt;
		if (passed < 0) {
			e.what = RIVAL_LOST;
			e.at = model->now + model->is.rtt + model_queue(model);
		}
		model->rival.in_flight++;
		push(model, e);
	}
}

static void rival_hears(struct model *model, const struct model_event *e)
{
	model->rival.in_flight--;
	if (e->what == RIVAL_ACK) {
		model->rival.cwnd += 1 / model->rival.cwnd;
		model->rival.arrived += MODEL_MSS;
	} else if (model->now - model->rival.halved_at > model->is.rtt) {
		model->rival.halved_at = model->now;
		model->rival.cwnd = model->rival.cwnd > 4 ?
			model->rival.cwnd / 2 : 2;
	}
	rival_sends(model);
}

void model_rival(struct model *model, bool on)
{
	model->rival.on = on;
	if (model->rival.cwnd < 2)
		model->rival.cwnd = MODEL_WINDOW;
	rival_sends(model);
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
		assert_int_equal(pipe_room(model->path.pipes[i]), 0);
}

static void served(struct model *model, struct model_conn *c, size_t len)
{
	int64_t waited = model->now - c->served_at;
	unsigned int i;

	if (waited > c->longest_wait)
		c->longest_wait = waited;
	c->served_at = model->now;
	c->sent += len;
	c->lately += len;
	if (c->backlog != UINT64_MAX) {
		c->backlog -= len;
		return;
	}
	for (i = 0; i < MODEL_CONNS; i++) {
		const struct model_conn *o = &model->conn[i];

		if (o->backlog == UINT64_MAX && c->lately > o->lately &&
		    c->lately - o->lately > model->unfair)
			model->unfair = c->lately - o->lately;
	}
}

static void mind_overshoot(struct model *model, size_t before, size_t len)
{
	size_t limit = model->path.aggregate.limit;

	assert_true(before < limit);
	if (before + len > limit && before + len - limit > model->overshoot)
		model->overshoot = before + len - limit;
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
	size_t before;

	e.len = next->payload < c->backlog ? next->payload : c->backlog;
	e.clean = pipe_is_clear(pipe);
	served(model, c, e.len);
	if (!c->backlog) {
		c->conn.ready = false;
		sched_idle(&model->sched, &c->conn, model->now);
	}
	model->sched.conns->sent(&model->sched, &c->conn, e.len);
	thin_sent(&model->path, &c->conn, pipe, e.len);
	e.asked = path_sends(&model->path, pipe, e.len, model->now, &before);
	mind_overshoot(model, before, e.len);
	e.held = before + e.len;
	pipe->tx_messages++;
	pipe->tx_bytes += e.len;
	write_message(model, &model->pipe[pipe->index], e);
}

static void pump(struct model *model)
{
	struct view view = {
		.sched = &model->sched, .path = &model->path,
		.now = model->now,
	};
	struct next next;

	path_look(&model->path, model->now);
	while ((next = sched_next(&view)).act != NEXT_WAIT)
		send_one(model, &next);
	if (next.wait == WAIT_FOR_PIPES)
		assert_none_waits(model);
	if (next.until == NEXT_NEVER || model->waits)
		return;
	model->waits = true;
	push(model, (struct model_event){ .what = LOOK, .at = next.until });
}

/* --- life --- */

void model_init(struct model *model, const struct model_params *params,
	       struct random *chance)
{
	unsigned int i;

	memset(model, 0, sizeof(*model));
	model->is = *params;
	model->chance = chance;
	model->now = NS_PER_SEC;
	model->settings.late = true;
	sched_init(&model->sched, conn_policies[0], params->policy,
		   params->pipes, 1);
	aggregate_init(&model->path.aggregate, params->mode, 2, model->now);
	for (i = 0; i < params->pipes; i++) {
		struct model_pipe *p = &model->pipe[i];

		p->pipe.index = i;
		p->pipe.settings = &model->settings;
		p->pipe.carrier = &carrier;
		p->pipe.info.mss = MODEL_MSS;
		p->cwnd = MODEL_WINDOW;
		p->ssthresh = 1e9;
		p->srtt = (double)params->rtt;
		p->waiting = calloc(WAITING, sizeof(*p->waiting));
		p->owed = calloc(1, sizeof(*p->owed));
		assert_non_null(p->waiting);
		assert_non_null(p->owed);
		set_info(model, p);
		path_add(&model->path, &p->pipe);
	}
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
		free(model->pipe[i].waiting);
		free(model->pipe[i].owed);
	}
	free(model->heap);
}

void model_offer(struct model *model, unsigned int i, uint64_t bytes)
{
	struct model_conn *c = &model->conn[i];

	c->backlog = bytes == UINT64_MAX ? bytes : c->backlog + bytes;
	c->done_at = 0;
	if (!c->conn.ready) {
		c->conn.ready = true;
		c->served_at = model->now;
		sched_ready(&model->sched, &c->conn, model->now);
	}
	pump(model);
}

void model_forget(struct model *model)
{
	unsigned int i;

	model->arrived = model->dropped = model->rival.arrived = 0;
	model->longest_queue = 0;
	model->overshoot = model->unfair = 0;
	for (i = 0; i < MODEL_CONNS; i++) {
		model->conn[i].longest_wait = 0;
		model->conn[i].lately = 0;
	}
}

static void happen(struct model *model, struct model_event e)
{
	struct model_pipe *p = &model->pipe[e.pipe];

	switch (e.what) {
	case ARRIVAL:
		arrived(model, e);
		break;
	case ACK:
		acknowledged(model, &e);
		break;
	case LOST:
		p->pipe.info.in_flight -= e.len;
		halve(model, p);
		e.clean = false;
		leave(model, e);
		break;
	case ACK_TIMER:
		delay_is_over(model, &e);
		break;
	case RIVAL_ACK:
	case RIVAL_LOST:
		rival_hears(model, &e);
		break;
	case LOOK:
		model->waits = false;
		pump(model);
		break;
	}
}

void model_run(struct model *model, int64_t ns)
{
	int64_t until = model->now + ns;

	while (model->events && model->heap[0].at <= until) {
		struct model_event e = pop(model);

		model->now = e.at;
		happen(model, e);
	}
	model->now = until;
}
