/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pipe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../base/sock.h"
#include "owed.h"
#include "transport.h"

/* The allowance: what the pipe sends in this time, in these bounds. */
#define ALLOWANCE_SECONDS 0.004
enum {
	ALLOWANCE_SEGMENTS = 2,	/* one on its way out, one behind it */
	ALLOWANCE_MAX = 512 * 1024,
	BREACH_LEN = 160,
	GATHERED_RUNS = 16,	/* of which each may be a whole one's memory */
};

#define LOOK_INTERVAL (10 * NS_PER_MS)
#define ASTRAY_INTERVAL (2 * NS_PER_MS)	/* while there is loss */
/* One that does not tell: in half the time in which its allowance is sent, */
#define AGAIN_MIN NS_PER_MS		/* in these bounds. */
#define AGAIN_MAX (10 * NS_PER_MS)

/* --- what the kernel says --- */

static void set_allowance(struct pipe *p)
{
	double bytes = p->info.rate * ALLOWANCE_SECONDS;
	size_t least = (size_t)ALLOWANCE_SEGMENTS * p->info.mss;

	if (bytes > ALLOWANCE_MAX)
		bytes = ALLOWANCE_MAX;
	p->allowance = (size_t)bytes > least ? (size_t)bytes : least;
	if (p->settings->late)
		p->carrier->allow(p);
}

void pipe_look_closely(struct pipe *p, int64_t now)
{
	p->looked_at = now;
	p->carrier->look(p);
	set_allowance(p);
}

void pipe_idles(struct pipe *p, bool told)
{
	p->idle.bytes = p->tx_bytes;
	p->idle.told = told;
}

/*
 * What the kernel says of a socket changes by what is sent and by what is acknowledged. So
 * of an idle one its queues are known, and once it was asked behind that, all else is, too.
 */
void pipe_look(struct pipe *p, int64_t now)
{
	bool idle = p->idle.bytes == p->tx_bytes;

	if (idle && p->idle.told)
		return;
	if (now - p->looked_at >= (p->info.astray ? ASTRAY_INTERVAL :
				   LOOK_INTERVAL))
		pipe_look_closely(p, now);
	else if (!idle)
		p->carrier->look_at_queues(p);
}

/* --- out --- */

/*
 * Of a pipe that is wanted and does not tell: half of what it may have unsent can have left then.
 * Of memory nobody knows when there is some.
 */
static int64_t again_in(const struct pipe *p)
{
	double half = p->info.rate > 0 ?
		(double)p->allowance / p->info.rate / 2 * NS_PER_SEC : AGAIN_MIN;

	if (p->is_short || half > AGAIN_MAX)
		return AGAIN_MAX;
	return half > AGAIN_MIN ? (int64_t)half : AGAIN_MIN;
}

/* Its socket would call itself writable as long as its buffer is. */
static void look_again_in_time(struct pipe *p)
{
	if (!p->is_short && (!p->wanted || p->tells || p->queue))
		loop_timer_stop(p->loop, &p->look_again);
	else if (!p->look_again.slot)
		loop_timer_in(p->loop, &p->look_again, again_in(p));
}

/* As the loop does for what lies in the socket: says it as long as it is so. */
static void tell_unpolled(struct pipe *p)
{
	bool pending = p->layer && p->layer->pending && !p->paused;

	if (p->watch.fd >= 0 && (pending || p->end_error))
		loop_after(p->loop, &p->unpolled);
}

static void read_unpolled(struct task *t)
{
	struct pipe *p = container_of(t, struct pipe, unpolled);

	tell_unpolled(p);
	p->ops->readable(p);
}

static void update_watch(struct pipe *p)
{
	uint32_t events = 0;

	if (p->watch.fd < 0)
		return;
	tell_unpolled(p);
	if (!p->paused)
		events |= EPOLLIN;
	if (!p->is_short && ((p->wanted && p->tells) || p->queue))
		events |= EPOLLOUT;
	loop_want(p->loop, &p->watch, events);
	look_again_in_time(p);
}

static size_t room_late(struct pipe *p)
{
	size_t room;

	if (pipe_is_blocked(p) || p->info.unsent + p->queued >= p->allowance)
		return 0;
	room = p->allowance - p->info.unsent - p->queued;
	/* Less than a segment is not worth a message. */
	if (room < p->info.mss && p->info.unsent)
		return 0;
	return room;
}

/*
 * On a slow path single messages, as long as nothing waits for the socket: it tells
 * when it is full. On a fast one what it takes, or a message at least.
 */
static size_t room_early(const struct pipe *p)
{
	bool fast = p->allowance >= PIPE_FAST;
	size_t room = pipe_is_blocked(p) || !fast ? 0 : p->info.space;

	if (fast && p->queued < p->settings->app_buffer)
		room += p->settings->app_buffer - p->queued;
	if (room >= WIRE_MESSAGE_MAX)
		return room;
	if (pipe_is_blocked(p) &&
	    p->queued + WIRE_MESSAGE_MAX > p->settings->app_buffer)
		return 0;
	return WIRE_MESSAGE_MAX;
}

size_t pipe_room(struct pipe *p)
{
	size_t room;

	if (p->watch.fd < 0 || p->standby)
		return 0;
	room = p->settings->late ? room_late(p) : room_early(p);
	return room < RUN_LARGE ? room : RUN_LARGE;
}

void pipe_ask(struct pipe *p, size_t before, size_t len)
{
	pipe_flush(p);
	p->asking = !p->queue && acks_can_ask(&p->acks);
	p->asking_clear = pipe_is_clear(p);
	p->asking_held = before + len;
	p->asking_len = len;
}

/* The pipe is done with it. */
static void let_go(struct pipe *p, struct run *run)
{
	run->next = NULL;
	if (!run->kept)
		run_put(&p->shared->pool, run);
}

/* From the first on, as far as they are written. */
static void let_written_go(struct pipe *p)
{
	struct run *run;

	while ((run = p->queue) && run->sent == run->len) {
		p->queue = run->next;
		let_go(p, run);
	}
	if (!p->queue)
		p->queue_end = &p->queue;
}

/* Writes what waits, as far as the socket takes it. */
static void flush_queue(struct pipe *p)
{
	int err = 0;

	while (p->queue && !err) {
		err = p->carrier->write(p, p->queue);
		let_written_go(p);
	}
	p->is_short = sock_is_shortage(-err);
	if (err)
		tell_unpolled(p);
}

/* So many more bytes are in its socket. */
static void take_space(struct pipe *p, size_t bytes)
{
	p->info.unsent += bytes;
	p->info.space -= bytes < p->info.space ? bytes : p->info.space;
}

static void add_to_queue(struct pipe *p, struct run *run)
{
	run->next = NULL;
	*p->queue_end = run;
	p->queue_end = &run->next;
	p->queued += run->len - run->sent;
}

/* What waits for the socket is bound early, and may wait for long. */
static void trim_queue(struct pipe *p)
{
	struct run **at = &p->queue;

	for (; *at; at = &(*at)->next) {
		if (!(*at)->kept)
			*at = run_trim(&p->shared->pool, *at);
	}
	p->queue_end = at;
}

static void forget_gathered(struct pipe *p)
{
	p->gathered = 0;
	p->of_conns = false;
	list_del(&p->gathering);
}

/*
 * What an error in writing means is left to the reading side: what the peer sent before it
 * went is still to be read.
 */
void pipe_flush(struct pipe *p)
{
	uint64_t before = p->tx_bytes;

	if (!p->gathered)
		return;
	forget_gathered(p);
	flush_queue(p);
	take_space(p, (size_t)(p->tx_bytes - before));
	if (!p->queue)
		return;
	if (!p->settings->late)
		trim_queue(p);
	update_watch(p);
}

/* Does it pay to wait for what else there is? */
static bool gathers(const struct pipe *p)
{
	return p->shared->gathering.on && !p->asking && p->carrier->gathers &&
	       p->gathered < GATHERED_RUNS && pipe_gathers_more(p);
}

void pipe_send(struct pipe *p, struct run *run)
{
	p->tx_messages += run->messages;
	if (!run->id)
		p->tx_control += run->messages;
	if (pipe_is_blocked(p)) {
		if (!p->settings->late && !run->kept)
			run = run_trim(&p->shared->pool, run);
		add_to_queue(p, run);
		update_watch(p);
		return;
	}
	add_to_queue(p, run);
	if (p->of_conns && run->id &&
	    layer_len(p->layer, p->queued) <= p->info.mss)
		p->tx_joined += run->messages;
	p->of_conns |= run->id != 0;
	p->gathered++;
	if (!gathers(p))
		pipe_flush(p);
	else if (p->gathered == 1)
		list_add_tail(&p->shared->gathering.pipes, &p->gathering);
}

void pipe_want(struct pipe *p, bool wanted)
{
	p->wanted = wanted;
	update_watch(p);
}

void pipe_pause(struct pipe *p, bool paused)
{
	p->paused = paused;
	update_watch(p);
}

/* --- in --- */

bool pipe_give(struct pipe *p, const struct wire_msg *msg, uint64_t offset)
{
	p->rx_messages++;
	return p->ops->message(p, msg, offset);
}

size_t pipe_read(struct pipe *p, size_t most)
{
	size_t got;

	if (p->watch.fd < 0)
		return 0;
	got = p->carrier->read(p, most);
	if (got)
		p->heard_at = loop_now(p->loop);
	owed_came(p, got);
	tell_unpolled(p);
	return got;
}

size_t pipe_unread(const struct pipe *p)
{
	if (p->watch.fd < 0)
		return 0;
	return sock_unread(p->fd) + (p->layer ? p->layer->pending : 0);
}

bool pipe_head(const struct pipe *p, struct wire_head *head)
{
	return wire_head_up_to(p->partial.bytes, p->partial.len,
			       pipe_largest(p->shared), head);
}

/* Never to be read again: a dead socket would report itself for ever. */
void pipe_forsake(struct pipe *p)
{
	loop_unwatch(p->loop, &p->watch);
	loop_timer_stop(p->loop, &p->look_again);
	loop_task_stop(&p->unpolled);
	loop_task_stop(&p->owed.task);
}

const char *pipe_failure(const struct pipe *p, int err)
{
	return p->layer && err == -EBADMSG ? p->layer->ops->why(p->layer) :
	       strerror(-err);
}

void pipe_end(struct pipe *p, int err)
{
	pipe_forsake(p);
	p->ops->ended(p, err);
}

void pipe_tear(struct pipe *p, const char *what, uint64_t offset)
{
	char detail[BREACH_LEN];

	snprintf(detail, sizeof(detail), "byte %llu, length: %s",
		 (unsigned long long)offset, what);
	pipe_forsake(p);
	p->ops->broken(p, what, detail);
}

void pipe_break(struct pipe *p, const struct wire_msg *msg, uint64_t offset)
{
	size_t most = msg->id ? pipe_largest(p->shared) : (size_t)WIRE_MESSAGE_MAX;
	char what[BREACH_LEN], detail[BREACH_LEN];

	snprintf(what, sizeof(what), "a message of impossible length %u",
		 msg->body_len);
	snprintf(detail, sizeof(detail), "byte %llu, %s: %u is neither 9 to %zu, SYN nor FIN (id %u, number %u)",
		 (unsigned long long)offset, wire_error_field(WIRE_BAD_LENGTH),
		 msg->body_len, most, msg->id, msg->number);
	pipe_forsake(p);
	p->ops->broken(p, what, detail);
}

/* An error that is only news is none. */
static bool take_news(struct pipe *p)
{
	struct ack_asked what;
	bool news = false;
	enum acks_news n;
	int64_t at;

	while (p->acks.on && (n = acks_next(&p->acks, p->fd, &what, &at)) !=
			     ACKS_NO_MORE) {
		news = true;
		if (n == ACKS_ACKED)
			p->ops->acked(p, &what, at);
		else if (n == ACKS_LEFT)
			acks_met(&p->acks, &what, p->ops->in_flight(p));
	}
	return news;
}

/* What waits goes, as far as it does now, and then what is to follow. */
static void go_on(struct pipe *p)
{
	flush_queue(p);
	if (p->wanted)
		p->ops->writable(p);
	else
		update_watch(p);
}

static void look_again(struct timer *t)
{
	go_on(container_of(t, struct pipe, look_again));
}

static void pipe_ready(struct watch *w, uint32_t events)
{
	struct pipe *p = container_of(w, struct pipe, watch);

	if (events & EPOLLERR && take_news(p))
		events &= ~(uint32_t)EPOLLERR;
	if (events & EPOLLOUT)
		go_on(p);
	/* A batch may tell of what was paused meanwhile. */
	if (p->watch.fd >= 0 &&
	    (events & (EPOLLHUP | EPOLLERR) ||
	     (events & EPOLLIN && !p->paused)))
		p->ops->readable(p);
}

/* --- life --- */

const struct carrier *carrier_of(enum transport t)
{
	static const struct carrier *const carriers[TRANSPORTS] = {
		[TRANSPORT_TCP] = &carrier_stream,
		[TRANSPORT_MPTCP] = &carrier_mptcp,
		[TRANSPORT_SCTP] = &carrier_sctp,
	};

	return carriers[t];
}

static int open_carrier(struct pipe *p)
{
	const struct settings *settings = p->settings;

	p->transport = transport_of(p->fd);
	p->carrier = carrier_of(p->transport);
	sock_arm_reset(p->fd);
	if (!settings->late && settings->pipe_sndbuf)
		setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &settings->pipe_sndbuf,
			   sizeof(settings->pipe_sndbuf));
	/* What is bound early waits for room in the socket alone. */
	p->tells = !settings->late;
	return p->carrier->open(p);
}

struct pipe *pipe_new(struct pipe_shared *shared, const struct pipe_ops *ops,
		      void *owner, struct conduit conduit)
{
	struct pipe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->shared = shared;
	p->loop = shared->loop;
	p->settings = shared->settings;
	p->ops = ops;
	p->owner = owner;
	p->fd = conduit.fd;
	p->layer = conduit.layer;
	loop_task_init(&p->unpolled, read_unpolled);
	owed_init(p);
	p->queue_end = &p->queue;
	p->watch.ready = pipe_ready;
	list_init(&p->lost);
	list_init(&p->gathering);
	p->info.mss = 536;	/* until the kernel says better */
	p->idle.bytes = UINT64_MAX;	/* a greeting may be under way */
	p->look_again.fire = look_again;
	if (open_carrier(p) < 0)
		goto free_pipe;
	if (loop_watch(p->loop, &p->watch, p->fd, EPOLLIN) < 0)
		goto close_carrier;
	p->rx_small = true;	/* until it brings large ones */
	p->heard_at = loop_clock();
	pipe_look_closely(p, p->heard_at);
	tell_unpolled(p);
	return p;

close_carrier:
	p->carrier->close(p);
free_pipe:
	free(p);
	return NULL;
}

void pipe_drop_queue(struct pipe *p)
{
	while (p->queue) {
		struct run *run = p->queue;

		p->queue = run->next;
		let_go(p, run);
	}
	p->queue_end = &p->queue;
	p->queued = 0;
	forget_gathered(p);
}

void pipe_free(struct pipe *p)
{
	if (!p)
		return;
	pipe_forsake(p);
	p->carrier->close(p);
	conduit_close((struct conduit){ p->fd, p->layer });
	pipe_drop_queue(p);
	list_del(&p->lost);
	partial_fini(&p->partial);
	free(p);
}

bool pipe_is_unheard(struct pipe *p, int64_t now, int64_t limit)
{
	bool unheard = p->carrier->is_unheard(p, now, limit);

	tell_unpolled(p);
	return unheard;
}

void pipe_shut(struct pipe *p)
{
	sock_orderly(p->fd);
	p->carrier->shut(p);
}
