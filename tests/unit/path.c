/* SPDX-License-Identifier: MIT */
#include "path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"

#define DELAYED_ACK (40 * NS_PER_MS)
#define REFUSED_LOOK (5 * NS_PER_MS)

enum { WAITING = 1024 };	/* messages in a socket, at most */

enum what { ARRIVAL, ACK, LOST, ACK_TIMER, RIVAL_ACK, RIVAL_LOST, LOOK };

struct path_event {
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

static void pump(struct path *path);

/* --- events --- */

static bool before(const struct path_event *a, const struct path_event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void swap(struct path_event *a, struct path_event *b)
{
	struct path_event t = *a;

	*a = *b;
	*b = t;
}

static void push(struct path *path, struct path_event e)
{
	unsigned int i;

	if (path->events == path->room) {
		path->room = path->room ? 2 * path->room : 256;
		path->heap = realloc(path->heap,
				     path->room * sizeof(*path->heap));
		assert_non_null(path->heap);
	}
	e.order = path->order++;
	i = path->events++;
	path->heap[i] = e;
	for (; i && before(&path->heap[i], &path->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap(&path->heap[i], &path->heap[(i - 1) / 2]);
}

static struct path_event pop(struct path *path)
{
	struct path_event first = path->heap[0];
	unsigned int i = 0, c;

	path->heap[0] = path->heap[--path->events];
	while ((c = 2 * i + 1) < path->events) {
		if (c + 1 < path->events &&
		    before(&path->heap[c + 1], &path->heap[c]))
			c++;
		if (before(&path->heap[i], &path->heap[c]))
			break;
		swap(&path->heap[i], &path->heap[c]);
		i = c;
	}
	return first;
}

/* --- the bottleneck --- */

int64_t path_queue(const struct path *path)
{
	return path->busy_until > path->now ? path->busy_until - path->now : 0;
}

/* When the last bit has passed, or -1: there is no room. */
static int64_t pass(struct path *path, size_t len)
{
	double waits = (double)path_queue(path) / 1e9 * path->is.rate;

	if (waits + (double)len > (double)path->is.queue) {
		path->dropped++;
		return -1;
	}
	if (path->busy_until < path->now)
		path->busy_until = path->now;
	path->busy_until += (int64_t)((double)len / path->is.rate * 1e9);
	if (path_queue(path) > path->longest_queue)
		path->longest_queue = path_queue(path);
	return path->busy_until;
}

static bool is_unlucky(struct path *path)
{
	return path->is.loss > 0 &&
	       random_below(path->chance, 1000000) < path->is.loss * 1e6;
}

/* --- pipes --- */

static void set_info(struct path *path, struct path_pipe *p)
{
	struct pipe_info *info = &p->pipe.info;
	double rate = p->cwnd * PATH_MSS / (p->srtt / 1e9);
	double allowance = rate * 0.004;

	if (allowance > 512 * 1024)
		allowance = 512 * 1024;
	info->cwnd = (uint32_t)p->cwnd;
	info->rtt_ms = p->srtt / 1e6;
	info->rttmin_ms = (double)path->is.rtt / 1e6;
	p->pipe.allowance = allowance > 2 * PATH_MSS ? (size_t)allowance :
		2 * PATH_MSS;
}

static bool window_open(const struct path_pipe *p, size_t len)
{
	return p->pipe.info.in_flight + len <= (size_t)(p->cwnd * PATH_MSS);
}

static void leave(struct path *path, struct path_event e)
{
	int64_t passed = is_unlucky(path) ? -1 : pass(path, e.len);

	path->pipe[e.pipe].pipe.info.in_flight += e.len;
	if (!e.clean)
		e.left_at = path->now;
	if (passed < 0) {
		e.what = LOST;
		e.at = path->now + path->is.rtt + path_queue(path);
	} else {
		e.what = ARRIVAL;
		e.at = passed + path->is.rtt / 2;
	}
	push(path, e);
}

static void flush(struct path *path, struct path_pipe *p)
{
	while (p->count && window_open(p, p->waiting[p->first].len)) {
		p->pipe.info.unsent -= p->waiting[p->first].len;
		leave(path, p->waiting[p->first]);
		p->first = (p->first + 1) % WAITING;
		p->count--;
	}
}

static void write_message(struct path *path, struct path_pipe *p,
			  struct path_event e)
{
	assert_true(p->count < WAITING);
	p->waiting[(p->first + p->count++) % WAITING] = e;
	p->pipe.info.unsent += e.len;
	flush(path, p);
}

static void opens(struct path *path, struct path_pipe *p, size_t len)
{
	bool used = p->pipe.info.in_flight + p->pipe.info.unsent +
		2 * PATH_MSS > (size_t)(p->cwnd * PATH_MSS) / 2;

	if (used && p->cwnd < p->ssthresh)
		p->cwnd += (double)len / PATH_MSS;
	else if (used && p->count)
		p->cwnd += (double)len / PATH_MSS / p->cwnd;
	set_info(path, p);
}

static void halve(struct path *path, struct path_pipe *p)
{
	if (path->now - p->halved_at < path->is.rtt)
		return;
	p->halved_at = path->now;
	p->cwnd = p->ssthresh = p->cwnd > 4 ? p->cwnd / 2 : 2;
	set_info(path, p);
}

static void acknowledged(struct path *path, const struct path_event *e)
{
	struct path_pipe *p = &path->pipe[e->pipe];
	struct aggregate_ack ack = {
		.sent_at = e->sent_at, .left_at = e->left_at,
		.acked_at = path->now, .held = e->held, .mss = PATH_MSS,
		.before = e->held - e->len,
		.more = path->sched.ready > 0,
	};
	size_t in_flight = 0;
	unsigned int i;

	for (i = 0; i < path->is.pipes; i++)
		in_flight += path->pipe[i].pipe.info.in_flight;
	ack.delivered = path->acked += e->len;
	ack.counted_at = path->now;
	if (!e->clean)
		ack.held = in_flight;
	p->srtt += ((double)(path->now - e->left_at) - p->srtt) / 8;
	p->pipe.info.in_flight -= e->len;
	opens(path, p, e->len);
	if (e->asked)
		aggregate_acked(&path->aggregate, &ack);
	flush(path, p);
	pump(path);
}

/* --- the receiver --- */

static void acknowledge(struct path *path, struct path_event e)
{
	e.what = ACK;
	e.at = path->now + path->is.rtt / 2;
	push(path, e);
}

static void arrived(struct path *path, struct path_event e)
{
	struct path_pipe *p = &path->pipe[e.pipe];
	struct path_conn *c = &path->conn[e.conn];

	path->arrived += e.len;
	c->arrived += e.len;
	if (c->arrived == c->sent && !c->backlog)
		c->done_at = path->now;
	if (!path->is.delayed_acks || p->owed_number % 2) {
		if (p->owed_number++ % 2)
			acknowledge(path, *p->owed);
		acknowledge(path, e);
		return;
	}
	*p->owed = e;
	e.what = ACK_TIMER;
	e.number = ++p->owed_number;
	e.at = path->now + DELAYED_ACK;
	push(path, e);
}

static void delay_is_over(struct path *path, const struct path_event *e)
{
	struct path_pipe *p = &path->pipe[e->pipe];

	if (p->owed_number != e->number)
		return;
	p->owed_number++;
	acknowledge(path, *p->owed);
}

/* --- another's connection --- */

static void rival_sends(struct path *path)
{
	while (path->rival.on &&
	       path->rival.in_flight + 1 <= (unsigned int)path->rival.cwnd) {
		int64_t passed = pass(path, PATH_MSS);
		struct path_event e = { .what = RIVAL_ACK };

		e.at = passed + path->is.rtt;
		if (passed < 0) {
			e.what = RIVAL_LOST;
			e.at = path->now + path->is.rtt + path_queue(path);
		}
		path->rival.in_flight++;
		push(path, e);
	}
}

static void rival_hears(struct path *path, const struct path_event *e)
{
	path->rival.in_flight--;
	if (e->what == RIVAL_ACK) {
		path->rival.cwnd += 1 / path->rival.cwnd;
		path->rival.arrived += PATH_MSS;
	} else if (path->now - path->rival.halved_at > path->is.rtt) {
		path->rival.halved_at = path->now;
		path->rival.cwnd = path->rival.cwnd > 4 ?
			path->rival.cwnd / 2 : 2;
	}
	rival_sends(path);
}

void path_rival(struct path *path, bool on)
{
	path->rival.on = on;
	if (path->rival.cwnd < 2)
		path->rival.cwnd = PATH_WINDOW;
	rival_sends(path);
}

/* --- the engine --- */

static size_t held(const struct path *path)
{
	size_t sum = 0;
	unsigned int i;

	for (i = 0; i < path->is.pipes; i++)
		sum += pipe_held(&path->pipe[i].pipe);
	return sum;
}

/* Never may a message wait while a pipe could send. */
static void assert_none_waits(struct path *path, size_t together)
{
	unsigned int i;

	if (!path->sched.ready || !together)
		return;
	for (i = 0; i < path->is.pipes; i++)
		assert_int_equal(pipe_room(&path->pipe[i].pipe), 0);
}

static void served(struct path *path, struct path_conn *c, size_t len)
{
	int64_t waited = path->now - c->served_at;
	unsigned int i;

	if (waited > c->longest_wait)
		c->longest_wait = waited;
	c->served_at = path->now;
	c->sent += len;
	c->lately += len;
	if (c->backlog != UINT64_MAX) {
		c->backlog -= len;
		return;
	}
	for (i = 0; i < PATH_CONNS; i++) {
		const struct path_conn *o = &path->conn[i];

		if (o->backlog == UINT64_MAX && c->lately > o->lately &&
		    c->lately - o->lately > path->unfair)
			path->unfair = c->lately - o->lately;
	}
}

/* One message; what a session's send_run() does, with numbers for sockets. */
static bool send_one(struct path *path, struct pipe *pipe, size_t together)
{
	size_t room = pipe_room(pipe), len = pipe_payload(pipe), before_it;
	struct sched_choice choice;
	struct path_event e = { 0 };
	struct path_conn *c;

	choice = path->sched.conns->next(&path->sched, pipe,
					 room < together ? room : together,
					 path->now);
	if (choice.act != SCHED_NEW)
		return false;
	c = container_of(choice.conn, struct path_conn, conn);
	if (len > c->backlog)
		len = c->backlog;
	before_it = held(path);
	assert_true(before_it < path->aggregate.limit);
	if (before_it + len > path->aggregate.limit &&
	    before_it + len - path->aggregate.limit > path->overshoot)
		path->overshoot = before_it + len - path->aggregate.limit;
	e.pipe = pipe->index;
	e.conn = (unsigned int)(c - path->conn);
	e.len = len;
	e.clean = pipe_is_clear(pipe);
	e.sent_at = e.left_at = path->now;
	e.held = before_it + len;
	path->tx_total += len;
	pipe->tx_messages++;
	e.asked = aggregate_asks(&path->aggregate, path->tx_total, before_it,
				 path->now);
	served(path, c, len);
	if (!c->backlog) {
		c->conn.ready = false;
		sched_idle(&path->sched, &c->conn);
	}
	path->sched.conns->sent(&path->sched, &c->conn, len, c->conn.ready);
	write_message(path, &path->pipe[pipe->index], e);
	return true;
}

static void pump(struct path *path)
{
	struct pipe *able[PIPES_MAX];
	size_t together = SIZE_MAX;
	unsigned int n = 0, i;

	for (i = 0; i < path->is.pipes; i++) {
		if (pipe_room(&path->pipe[i].pipe))
			able[n++] = &path->pipe[i].pipe;
	}
	while (n && path->sched.ready) {
		together = aggregate_room(&path->aggregate, held(path),
					  path->now);
		if (!together)
			break;
		i = path->sched.pipes->pick(&path->sched, able, n);
		if (!send_one(path, able[i], together) || !pipe_room(able[i]))
			able[i] = able[--n];
	}
	if (together && path->sched.ready)
		together = aggregate_room(&path->aggregate, held(path),
					  path->now);
	assert_none_waits(path, together);
	if (together || !path->sched.ready || path->refused)
		return;
	path->refused = true;
	aggregate_refused(&path->aggregate, path->now);
	push(path, (struct path_event){ .what = LOOK,
					.at = path->now + REFUSED_LOOK });
}

/* --- life --- */

void path_init(struct path *path, const struct path_params *params,
	       struct random *chance)
{
	unsigned int i;

	memset(path, 0, sizeof(*path));
	path->is = *params;
	path->chance = chance;
	path->now = NS_PER_SEC;
	path->settings.late = true;
	sched_init(&path->sched, &sched_drr, params->policy, params->pipes, 1);
	aggregate_init(&path->aggregate, params->mode, 2, path->now);
	aggregate_expect(&path->aggregate, params->rtt);
	for (i = 0; i < params->pipes; i++) {
		struct path_pipe *p = &path->pipe[i];

		p->pipe.index = i;
		p->pipe.settings = &path->settings;
		p->pipe.info.mss = PATH_MSS;
		p->cwnd = PATH_WINDOW;
		p->ssthresh = 1e9;
		p->srtt = (double)params->rtt;
		p->waiting = calloc(WAITING, sizeof(*p->waiting));
		p->owed = calloc(1, sizeof(*p->owed));
		assert_non_null(p->waiting);
		assert_non_null(p->owed);
		set_info(path, p);
	}
	for (i = 0; i < PATH_CONNS; i++) {
		path->conn[i].conn.id = (uint16_t)(i + 1);
		list_init(&path->conn[i].conn.turn);
		list_init(&path->conn[i].conn.ahead);
	}
}

void path_fini(struct path *path)
{
	unsigned int i;

	for (i = 0; i < path->is.pipes; i++) {
		free(path->pipe[i].waiting);
		free(path->pipe[i].owed);
	}
	free(path->heap);
}

void path_offer(struct path *path, unsigned int i, uint64_t bytes)
{
	struct path_conn *c = &path->conn[i];

	c->backlog = bytes == UINT64_MAX ? bytes : c->backlog + bytes;
	c->done_at = 0;
	if (!c->conn.ready) {
		c->conn.ready = true;
		c->served_at = path->now;
		sched_ready(&path->sched, &c->conn);
	}
	pump(path);
}

void path_forget(struct path *path)
{
	unsigned int i;

	path->arrived = path->dropped = path->rival.arrived = 0;
	path->longest_queue = 0;
	path->overshoot = path->unfair = 0;
	for (i = 0; i < PATH_CONNS; i++) {
		path->conn[i].longest_wait = 0;
		path->conn[i].lately = 0;
	}
}

static void happen(struct path *path, struct path_event e)
{
	struct path_pipe *p = &path->pipe[e.pipe];

	switch (e.what) {
	case ARRIVAL:
		arrived(path, e);
		break;
	case ACK:
		acknowledged(path, &e);
		break;
	case LOST:
		p->pipe.info.in_flight -= e.len;
		halve(path, p);
		e.clean = false;
		leave(path, e);
		break;
	case ACK_TIMER:
		delay_is_over(path, &e);
		break;
	case RIVAL_ACK:
	case RIVAL_LOST:
		rival_hears(path, &e);
		break;
	case LOOK:
		path->refused = false;
		pump(path);
		break;
	}
}

void path_run(struct path *path, int64_t ns)
{
	int64_t until = path->now + ns;

	while (path->events && path->heap[0].at <= until) {
		struct path_event e = pop(path);

		path->now = e.at;
		happen(path, e);
	}
	path->now = until;
}
