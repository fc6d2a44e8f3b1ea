/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/sock.h"
#include "../settings/limits.h"
#include "conn_inside.h"

enum { DELIVER_IOV = 64 };

#define CONN_EVENTS (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* --- ended, and gone --- */

static void set_ready(struct conn *c)
{
	if (c->ready || c->ended)
		return;
	c->ready = true;
	c->owner->ops->ready(c);
}

void conn_credited(struct conn *c)
{
	if (c->readable && c->state == CONN_OPEN)
		set_ready(c);
}

void conn_idle(struct conn *c)
{
	if (!c->ready)
		return;
	c->ready = false;
	c->owner->ops->idle(c);
}

static void reap_if_done(struct conn *c)
{
	if (c->ended && c->state == CONN_CLOSED)
		conn_owner_reap(c);
}

static void set_ended(struct conn *c, enum conn_end why)
{
	if (c->ended)
		return;
	if (c->end == CONN_END_NONE)
		c->end = (uint8_t)why;
	conn_idle(c);
	c->ended = true;
	c->fin_pending = 0;
	c->owner->ops->ended(c);
	conn_drop_early(c);
	reap_if_done(c);
}

static void drop_queue(struct conn *c)
{
	size_t len = conn_queued(c);

	if (!len)
		return;
	bytes_clear(&c->backlog->bytes);
	c->owner->ops->released(c, len, 0);
	backlog_release(&c->backlog);
}

void conn_drop_early(struct conn *c)
{
	size_t bytes = reorder_bytes(&c->reorder);

	conn_waits_in_vain(c, &c->reorder);
	reorder_fini(&c->reorder);
	if (bytes)
		c->owner->ops->released(c, 0, bytes);
}

static void move_to(struct conn *c, enum conn_state state)
{
	enum conn_state from = c->state;

	c->state = (uint8_t)state;
	if (from != state && c->owner->ops->moved)
		c->owner->ops->moved(c, from);
}

/* Linger 0 or not decides whether this is a reset. */
void conn_close_socket(struct conn *c)
{
	loop_close(c->owner->loop, &c->watch);
	loop_timer_stop(c->owner->loop, &c->timer);
	drop_queue(c);
	c->readable = c->writable = false;
	move_to(c, CONN_CLOSED);
	list_del(&c->place);
	reap_if_done(c);
}

/* Closing it is a reset until its orderly end has begun. */
void conn_reset_socket(struct conn *c)
{
	if (c->state == CONN_LINGERING)
		sock_arm_reset(c->watch.fd);
	conn_close_socket(c);
}

void conn_abort(struct conn *c, enum conn_end why)
{
	conn_reset_socket(c);
	set_ended(c, why);
}

void conn_reset(struct conn *c, enum conn_end why)
{
	if (c->ended || c->syn_pending) {	/* nobody to tell */
		conn_abort(c, why);
		return;
	}
	conn_reset_socket(c);
	conn_drop_early(c);
	if (c->end == CONN_END_NONE)
		c->end = (uint8_t)why;
	c->fin_pending = WIRE_REASON_RST;
	set_ready(c);
}

/* --- towards the socket --- */

static ssize_t write_iov(struct conn *c, struct iovec *iov, int n)
{
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = (size_t)n };

	return sendmsg(c->watch.fd, &mh, MSG_NOSIGNAL);
}

/*
 * A write failed: the peer reset the connection. What it said before may
 * still be read, and then the other end must hear of a reset, not of a FIN.
 */
static void write_failed(struct conn *c)
{
	if (c->ended) {
		conn_reset_socket(c);
		return;
	}
	if (c->out_ended) {
		conn_reset(c, CONN_END_LOCAL_RESET);
		return;
	}
	c->broken = true;
	c->writable = false;
	drop_queue(c);
	c->readable = true;
	set_ready(c);
}

/*
 * One direction has ended, whichever it is. An application that closed its socket
 * looks the same as one that waits for an answer, and where nothing is sent to it, it
 * would be missed after the two hours of TCP's keepalive. So it is asked, if the other
 * direction goes on for longer than most do.
 */
static void be_half_closed(struct conn *c)
{
	if (c->state == CONN_OPEN)
		loop_timer_in(c->owner->loop, &c->timer, HALF_CLOSED_MS * NS_PER_MS);
}

/* The application is told, and goes on sending. */
static void shut_socket(struct conn *c)
{
	if (c->shut)
		return;
	c->shut = true;
	shutdown(c->watch.fd, SHUT_WR);
	be_half_closed(c);
}

static void flush_queue(struct conn *c)
{
	struct iovec iov[DELIVER_IOV];

	while (conn_queued(c)) {
		int n = bytes_peek(&c->backlog->bytes, iov, DELIVER_IOV);
		ssize_t wrote = write_iov(c, iov, n);

		if (wrote < 0) {
			c->writable = false;
			if (errno != EAGAIN && errno != EINTR)
				write_failed(c);
			return;
		}
		bytes_consume(&c->backlog->bytes, (size_t)wrote);
		c->owner->ops->released(c, (size_t)wrote, 0);
		if (c->state == CONN_CLOSED)
			return;
	}
	backlog_release(&c->backlog);
	if (c->state == CONN_DRAINING)
		conn_all_written(c);
	else if (c->in_ended && c->state == CONN_OPEN)
		shut_socket(c);
}

static void drain(struct conn *c)
{
	/* A peer blocked in writing reads nothing until we read. */
	conn_discard(c);
	c->state = CONN_DRAINING;
	if (c->until)
		loop_timer_at(c->owner->loop, &c->timer, c->until);
	else
		loop_timer_stop(c->owner->loop, &c->timer);
	flush_queue(c);
}

void conn_deliver(struct conn *c, struct iovec *iov, int n, size_t len)
{
	size_t before = conn_queued(c);
	ssize_t wrote = 0;
	int err;

	if (c->ended || c->broken || c->state == CONN_CLOSED)
		return;
	c->unanswered = false;
	if (c->state == CONN_OPEN && c->writable && !before) {
		wrote = write_iov(c, iov, n);
		if (wrote < 0 && errno != EAGAIN && errno != EINTR) {
			write_failed(c);
			return;
		}
		if (wrote < 0)
			wrote = 0;
		if ((size_t)wrote == len)
			return;
		c->writable = false;
	}
	err = backlog_add(&c->backlog, iov, n, (size_t)wrote);
	c->owner->ops->queued(c, conn_queued(c) - before);
	if (err)
		conn_reset(c, CONN_END_LIMIT);
}

void conn_finish(struct conn *c, enum wire_reason reason)
{
	bool reset = reason == WIRE_REASON_RST;
	bool other_way = c->owner->speech->half_open && !c->out_ended;

	c->in_ended = c->complete = true;
	if (other_way && reset) {	/* the other end is owed one, too */
		conn_reset(c, CONN_END_PEER_RESET);
		return;
	}
	if (other_way) {
		if (c->state == CONN_OPEN)
			flush_queue(c);
		return;
	}
	set_ended(c, reset ? CONN_END_PEER_RESET : CONN_END_PEER_FIN);
	if (reset || c->broken)
		conn_reset_socket(c);
	else if (c->state == CONN_OPEN)
		drain(c);
	else if (c->state == CONN_WAIT || !conn_queued(c))
		conn_close_socket(c);
	/* Else the connect() goes on, because early data is to be delivered. */
}

void conn_fin_framed(struct conn *c, enum wire_reason reason)
{
	c->out_ended = true;
	if (reason != WIRE_REASON_RST && c->owner->speech->half_open && !c->in_ended) {
		c->fin_pending = 0;
		conn_idle(c);
		be_half_closed(c);
		return;
	}
	set_ended(c, c->end);
	if (c->state == CONN_CLOSED)
		return;
	if (reason == WIRE_REASON_RST)
		conn_reset_socket(c);
	else if (c->flow)
		conn_close_socket(c);
	else
		drain(c);
}

/* --- the socket's events --- */

static enum conn_end failure(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return CONN_END_REFUSED;
	case ETIMEDOUT:
		return CONN_END_TIMEOUT;
	default:
		return CONN_END_UNREACHABLE;
	}
}

static void connect_ended(struct conn *c, uint32_t events)
{
	int err = events & EPOLLERR ? sock_error(c->watch.fd) : 0;

	loop_timer_stop(c->owner->loop, &c->timer);
	if (err) {
		conn_reset(c, failure(err));
		return;
	}
	move_to(c, CONN_OPEN);
	c->connected_at = loop_clock();
	if (c->ended)
		drain(c);
	else if (c->owner->speech->answers)
		set_ready(c);
}

static void open_ready(struct conn *c, uint32_t events)
{
	if (c->out_ended && events & EPOLLERR) {
		conn_reset(c, CONN_END_LOCAL_RESET);
		return;
	}
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI))
		c->read_on = true;
	if (events & EPOLLRDHUP)
		c->ends = true;
	if (events & ~(uint32_t)EPOLLOUT && !c->out_ended) {
		if (c->owner->ops->filled)
			c->owner->ops->filled(c);
		c->readable = true;
		set_ready(c);
	}
	if (events & EPOLLOUT && !c->broken) {
		c->writable = true;
		flush_queue(c);
	}
}

static void conn_ready(struct watch *w, uint32_t events)
{
	struct conn *c = container_of(w, struct conn, watch);

	if (c->state == CONN_CONNECTING) {
		if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
			return;
		connect_ended(c, events);
	}
	if (c->state == CONN_OPEN) {
		open_ready(c, events);
	} else if (c->state == CONN_DRAINING) {
		conn_discard(c);
		flush_queue(c);
	} else if (c->state == CONN_HEEDING) {
		if (events & (EPOLLERR | EPOLLHUP))
			conn_close_socket(c);
	} else if (c->state == CONN_LINGERING) {
		conn_linger_look(c);
	}
}

/* What came so long ago must not become part of a later connection. */
static void syn_missed(struct conn *c)
{
	if (c->lost_early) {
		c->complete = true;	/* or else its owner is lost for ever */
		conn_abort(c, CONN_END_PROTOCOL);
		return;
	}
	c->lost_early = true;
	conn_drop_early(c);
	conn_await_syn(c);
}

void conn_await_syn(struct conn *c)
{
	loop_timer_in(c->owner->loop, &c->timer, REST_SECONDS * NS_PER_SEC);
}

/* A connect() may take less by a limit of its own. Lingering has one as well. */
void conn_limit_time(struct conn *c, int64_t ns)
{
	if (c->state == CONN_LINGERING)
		return;
	c->until = loop_clock() + ns;
	if (c->state == CONN_DRAINING ||
	    (c->state == CONN_CONNECTING && c->timer.at > c->until))
		loop_timer_at(c->owner->loop, &c->timer, c->until);
}

static void conn_timer(struct timer *t)
{
	struct conn *c = container_of(t, struct conn, timer);

	if (c->state == CONN_CONNECTING)
		conn_reset(c, CONN_END_TIMEOUT);
	else if (c->state == CONN_WAIT)
		syn_missed(c);
	else if (c->state == CONN_OPEN)
		sock_ask_soon(c->watch.fd);
	else if (c->state == CONN_DRAINING)
		conn_reset_socket(c);
	else if (c->state == CONN_HEEDING)
		conn_linger(c);
	else if (c->state == CONN_LINGERING)
		conn_linger_look(c);
}

/* --- life --- */

static const struct destination nowhere = { .kind = DESTINATION_NONE };

static void forget_destination(struct conn *c)
{
	if (c->dst != &nowhere)
		destination_forget(c->dst, &c->dst_place);
}

int conn_set_destination(struct conn *c, const struct destination *to)
{
	struct destination *copy = destination_keep(to, &c->dst_place);

	if (!copy)
		return -ENOMEM;
	forget_destination(c);
	c->dst = copy;
	return 0;
}

struct conn *conn_new(struct conn_owner *owner, uint16_t id)
{
	struct conn *c = slab_get(owner->conns);

	if (!c)
		return NULL;
	c->owner = owner;
	c->id = id;
	c->dst = &nowhere;
	c->watch.fd = -1;
	c->watch.ready = conn_ready;
	c->timer.fire = conn_timer;
	list_init(&c->member);
	list_init(&c->place);
	list_add_tail(&owner->sockets, &c->place);
	list_init(&c->turn);
	list_init(&c->ahead);
	reorder_init(&c->reorder, 0);
	c->unanswered = true;
	c->opened_at = loop_clock();
	return c;
}

void conn_free(struct conn *c)
{
	loop_close(c->owner->loop, &c->watch);
	loop_timer_stop(c->owner->loop, &c->timer);
	list_del(&c->turn);
	list_del(&c->ahead);
	list_del(&c->member);
	list_del(&c->place);
	backlog_free(&c->backlog);
	reorder_fini(&c->reorder);
	free(c->waits);
	conn_outlook_free(c);
	free(c->flow);
	forget_destination(c);
	slab_put(c->owner->conns, c);
}

void conn_prepare(int fd)
{
	sock_nodelay(fd);
	sock_urgent_inline(fd);
	sock_keepalive(fd);
	sock_arm_reset(fd);
}

static int take_socket(struct conn *c, int fd, enum conn_state state)
{
	int err = loop_watch(c->owner->loop, &c->watch, fd, CONN_EVENTS);

	if (err) {
		close(fd);
		return err;
	}
	c->state = (uint8_t)state;
	return 0;
}

int conn_attach(struct conn *c, int fd)
{
	int err = take_socket(c, fd, CONN_OPEN);

	/* If only to be closed at once: who counts sockets has counted it. */
	c->state = CONN_OPEN;
	if (err)
		return err;
	c->connected_at = loop_clock();
	c->readable = c->writable = true;	/* a try will tell */
	set_ready(c);
	return 0;
}

/* What is there already is told of as well. */
void conn_show_first(struct conn *c)
{
	c->unseen = true;
	c->readable = false;
}

void conn_ask(struct conn *c)
{
	set_ready(c);
}

void conn_end(struct conn *c, enum conn_end why)
{
	if (c->ended || c->fin_pending || c->out_ended)
		return;
	if (c->syn_pending) {	/* nobody to tell */
		conn_abort(c, why);
		return;
	}
	if (c->end == CONN_END_NONE)
		c->end = (uint8_t)why;
	c->fin_pending = c->owner->speech->no_more;
	set_ready(c);
}

void conn_leave_line(struct conn *c)
{
	c->in_line = false;
	list_move_tail(&c->owner->sockets, &c->place);
}

int conn_await_connect(struct conn *c, int64_t timeout_ns)
{
	c->state = CONN_CONNECTING;
	return loop_timer_in(c->owner->loop, &c->timer, timeout_ns);
}

int conn_connecting(struct conn *c, int fd, int64_t timeout_ns)
{
	int err;

	conn_prepare(fd);
	err = take_socket(c, fd, CONN_CONNECTING);
	if (err)
		return err;
	return loop_timer_in(c->owner->loop, &c->timer, timeout_ns);
}
