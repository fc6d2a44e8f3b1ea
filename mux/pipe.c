/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pipe.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sock.h"

/* The allowance: what the pipe sends in this time, in these bounds. */
#define ALLOWANCE_SECONDS 0.004
enum {
	ALLOWANCE_SEGMENTS = 2,	/* one on its way out, one behind it */
	ALLOWANCE_MAX = 512 * 1024,
	FAST_ALLOWANCE = 32 * 1024, /* from here on messages are full-sized */
	PAYLOAD_MIN = 512,
	PROBES_UNANSWERED = 4,
};

#define LOOK_INTERVAL (10 * NS_PER_MS)
#define ASTRAY_INTERVAL (2 * NS_PER_MS)	/* while there is loss */

/* --- what the kernel says --- */

static void set_lowat(struct pipe *p)
{
	int value = (int)p->allowance;

	/*
	 * The kernel wakes us below half of it; were it larger than the
	 * allowance, that could be before there is room. A little smaller
	 * is not worth a call.
	 */
	if (p->lowat <= p->allowance &&
	    p->allowance < p->lowat + p->lowat / 4)
		return;
	if (!setsockopt(p->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value,
			sizeof(value)))
		p->lowat = p->allowance;
}

/*
 * The rate is the larger of two estimates: what was delivered, unless the
 * sender had nothing to send, and what the window allows. By the first alone
 * the allowance would starve itself.
 */
static double rate_of(const struct tcp_info *ti)
{
	double by_window = ti->tcpi_rtt ?
		1e6 * ti->tcpi_snd_cwnd * ti->tcpi_snd_mss / ti->tcpi_rtt : 0;
	double delivered = ti->tcpi_delivery_rate_app_limited ?
		0 : (double)ti->tcpi_delivery_rate;

	return delivered > by_window ? delivered : by_window;
}

static void set_allowance(struct pipe *p)
{
	double bytes = p->info.rate * ALLOWANCE_SECONDS;
	size_t least = (size_t)ALLOWANCE_SEGMENTS * p->info.mss;

	if (bytes > ALLOWANCE_MAX)
		bytes = ALLOWANCE_MAX;
	p->allowance = (size_t)bytes > least ? (size_t)bytes : least;
	if (p->config->late)
		set_lowat(p);
}

static void look_at_queues(struct pipe *p)
{
	size_t outstanding = sock_outstanding(p->fd);

	p->info.unsent = outstanding ? sock_unsent(p->fd) : 0;
	p->info.in_flight = outstanding - p->info.unsent;
	if (p->info.in_flight > p->info.astray)
		p->info.in_flight -= p->info.astray;
	else
		p->info.in_flight = 0;
	p->info.stuck = p->info.in_flight ? 0 : p->info.unsent;
}

/* What arrived behind a gap, and what is taken for lost. */
static size_t astray(const struct tcp_info *ti)
{
	uint32_t gone = ti->tcpi_sacked + ti->tcpi_lost;

	return gone > ti->tcpi_retrans ?
		(size_t)(gone - ti->tcpi_retrans) * ti->tcpi_snd_mss : 0;
}

void pipe_look_closely(struct pipe *p, int64_t now)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	p->looked_at = now;
	memset(&ti, 0, sizeof(ti));
	if (getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &ti, &len) < 0 ||
	    !ti.tcpi_snd_mss)
		return;
	p->info.astray = astray(&ti);
	look_at_queues(p);
	p->info.rtt_ms = ti.tcpi_rtt / 1e3;
	p->info.rttmin_ms = ti.tcpi_min_rtt / 1e3;
	p->info.cwnd = ti.tcpi_snd_cwnd;
	p->info.mss = ti.tcpi_snd_mss;
	p->info.retransmits = ti.tcpi_total_retrans;
	p->info.rate = rate_of(&ti);
	set_allowance(p);
}

void pipe_look(struct pipe *p, int64_t now)
{
	if (now - p->looked_at >= (p->info.astray ? ASTRAY_INTERVAL :
				   LOOK_INTERVAL))
		pipe_look_closely(p, now);
	else
		look_at_queues(p);
}

/* --- out --- */

static void update_watch(struct pipe *p)
{
	uint32_t events = 0;

	if (p->watch.fd < 0)
		return;
	if (!p->paused)
		events |= EPOLLIN;
	if (p->wanted || p->queue)
		events |= EPOLLOUT;
	loop_want(p->loop, &p->watch, events);
}

static size_t room_late(struct pipe *p)
{
	size_t room;

	if (p->queue || p->info.unsent >= p->allowance)
		return 0;
	room = p->allowance - p->info.unsent;
	/* Less than a segment is not worth a message. */
	if (room < p->info.mss && p->info.unsent)
		return 0;
	return room < RUN_SIZE ? room : RUN_SIZE;
}

static size_t room_early(const struct pipe *p)
{
	if (p->queue && p->queued + WIRE_MESSAGE_MAX > p->config->app_buffer)
		return 0;
	return WIRE_MESSAGE_MAX;
}

size_t pipe_room(struct pipe *p)
{
	if (p->watch.fd < 0)
		return 0;
	return p->config->late ? room_late(p) : room_early(p);
}

size_t pipe_payload(const struct pipe *p)
{
	size_t mss = p->info.mss;

	if (!p->config->late || p->allowance >= FAST_ALLOWANCE)
		return WIRE_PAYLOAD_MAX;
	if (mss < PAYLOAD_MIN + WIRE_HEADER)
		return PAYLOAD_MIN;
	if (mss > WIRE_MESSAGE_MAX)
		return WIRE_PAYLOAD_MAX;
	return mss - WIRE_HEADER;
}

static ssize_t write_some(struct pipe *p, const void *buf, size_t len)
{
	struct ack_asked what = { .before = p->asking_before,
				  .held = p->asking_held };

	if (!p->asking)
		return send(p->fd, buf, len, MSG_NOSIGNAL);
	p->asking = false;
	what.clean = pipe_is_clear(p);
	what.schedule = !what.clean;
	return acks_send(&p->acks, p->fd, buf, len, p->tx_bytes, &what);
}

void pipe_ask(struct pipe *p, size_t before, size_t len)
{
	p->asking = !p->queue && acks_can_ask(&p->acks);
	p->asking_before = before;
	p->asking_held = before + len;
}

/* Returns 0, -EAGAIN, or what went wrong. */
static int write_run(struct pipe *p, struct run *run)
{
	while (run->sent < run->len) {
		ssize_t n = write_some(p, run->buf + run->sent,
				       run->len - run->sent);

		if (n < 0)
			return errno == EINTR ? -EAGAIN : -errno;
		run->sent += (size_t)n;
		p->tx_bytes += (uint64_t)n;
	}
	return 0;
}

/* Writes what waits, as far as the socket takes it. */
static void flush_queue(struct pipe *p)
{
	while (p->queue) {
		struct run *run = p->queue;
		size_t before = run->sent;
		int err = write_run(p, run);

		p->queued -= run->sent - before;
		if (err)
			return;
		p->queue = run->next;
		if (!p->queue)
			p->queue_end = &p->queue;
		run_put(&p->shared->pool, run);
	}
}

/*
 * What an error in writing means is left to the reading side, which will hear
 * of it too: what the peer sent before it went is still to be read.
 */
void pipe_send(struct pipe *p, struct run *run)
{
	int err = -EAGAIN;

	p->tx_messages += run->messages;
	if (!p->queue)
		err = write_run(p, run);
	if (!err) {
		p->info.unsent += run->len;
		run_put(&p->shared->pool, run);
		return;
	}
	if (!p->config->late)
		run = run_trim(run);
	*p->queue_end = run;
	p->queue_end = &run->next;
	p->queued += run->len - run->sent;
	update_watch(p);
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

/* Gives out the whole messages in @buf; keeps the rest. False: stop. */
static bool give_messages(struct pipe *p, const uint8_t *buf, size_t len)
{
	uint64_t offset = p->rx_bytes - len;
	struct wire_msg msg;
	size_t at = 0;
	int n;

	while ((n = wire_read(buf + at, len - at, &msg)) > 0) {
		p->rx_messages++;
		if (!p->ops->message(p, &msg, offset + at))
			return false;
		at += (size_t)n;
	}
	if (n < 0) {
		loop_unwatch(p->loop, &p->watch);
		p->ops->broken(p, &msg, offset + at);
		return false;
	}
	p->partial_len = len - at;
	if (p->partial_len)
		memcpy(p->partial, buf + at, p->partial_len);
	return true;
}

/* Never to be read again: a dead socket would report itself for ever. */
static void ended(struct pipe *p, int err)
{
	loop_unwatch(p->loop, &p->watch);
	p->ops->ended(p, err);
}

/*
 * One read into the shared buffer, behind what was left of the last one. A
 * pipe that was paused on the way keeps nothing back: what was read is given out.
 */
static void read_pipe(struct pipe *p, uint8_t *buf, size_t size)
{
	size_t had = p->partial_len;
	ssize_t n;

	memcpy(buf, p->partial, had);
	n = recv(p->fd, buf + had, size - had, 0);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			ended(p, -errno);
		return;
	}
	if (!n) {
		ended(p, 0);
		return;
	}
	p->rx_bytes += (uint64_t)n;
	if (give_messages(p, buf, had + (size_t)n))
		p->ops->batch(p);
}

/* An error that is only news is none. */
static bool take_news(struct pipe *p)
{
	struct ack_asked what;
	bool news = false;
	int64_t at;
	int n;

	while (p->acks.count &&
	       (n = acks_next(&p->acks, p->fd, &what, &at)) >= 0) {
		news = true;
		if (n)
			p->ops->acked(p, &what, at);
	}
	return news;
}

static void pipe_ready(struct watch *w, uint32_t events)
{
	struct pipe *p = container_of(w, struct pipe, watch);

	if (events & EPOLLERR && take_news(p))
		events &= ~(uint32_t)EPOLLERR;
	if (events & EPOLLOUT) {
		flush_queue(p);
		if (p->wanted)
			p->ops->writable(p);
		else
			update_watch(p);
	}
	if (p->watch.fd >= 0 &&
	    events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_pipe(p, p->shared->scratch, p->shared->scratch_size);
}

/* --- life --- */

static void set_options(struct pipe *p)
{
	const struct config *config = p->config;

	sock_nodelay(p->fd);
	sock_watchful(p->fd);
	sock_arm_reset(p->fd);
	if (config->cc)
		setsockopt(p->fd, IPPROTO_TCP, TCP_CONGESTION, config->cc,
			   (socklen_t)strlen(config->cc));
	if (!config->late && config->pipe_sndbuf)
		setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &config->pipe_sndbuf,
			   sizeof(config->pipe_sndbuf));
}

struct pipe *pipe_new(struct pipe_shared *shared, const struct pipe_ops *ops,
		      void *owner, unsigned int index, int fd)
{
	struct pipe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->partial = malloc(WIRE_MESSAGE_MAX);
	if (!p->partial)
		goto free_pipe;
	p->shared = shared;
	p->loop = shared->loop;
	p->config = shared->config;
	p->ops = ops;
	p->owner = owner;
	p->index = index;
	p->fd = fd;
	p->queue_end = &p->queue;
	p->watch.ready = pipe_ready;
	p->info.mss = 536;	/* until the kernel says better */
	if (loop_watch(p->loop, &p->watch, fd, EPOLLIN) < 0)
		goto free_partial;
	set_options(p);
	if (p->config->aggregate != AGGREGATE_OFF && p->config->late)
		acks_enable(&p->acks, fd);
	pipe_look_closely(p, loop_clock());
	return p;

free_partial:
	free(p->partial);
free_pipe:
	free(p);
	return NULL;
}

void pipe_free(struct pipe *p)
{
	if (!p)
		return;
	loop_unwatch(p->loop, &p->watch);
	close(p->fd);
	while (p->queue) {
		struct run *run = p->queue;

		p->queue = run->next;
		run_put(&p->shared->pool, run);
	}
	free(p->partial);
	free(p);
}

bool pipe_is_unheard(struct pipe *p, int64_t now, int64_t limit)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);
	int64_t since;

	memset(&ti, 0, sizeof(ti));
	if (!sock_outstanding(p->fd) ||
	    getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &ti, &len) < 0) {
		p->waiting_since = 0;
		return false;
	}
	if (!ti.tcpi_unacked) {
		/* Its window is closed: it is asked by probes, ever more rarely. */
		p->waiting_since = 0;
		return ti.tcpi_probes >= PROBES_UNANSWERED;
	}
	if (!p->waiting_since)
		p->waiting_since = now;
	since = now - ti.tcpi_last_ack_recv * NS_PER_MS;
	if (since < p->waiting_since)
		since = p->waiting_since;
	return now - since >= limit;
}

void pipe_shut(struct pipe *p)
{
	sock_orderly(p->fd);
	shutdown(p->fd, SHUT_WR);
}
