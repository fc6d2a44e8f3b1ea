/* SPDX-License-Identifier: MIT */
/*
 * An orderly end, once the pipes' side ended: the queue is written (conn.c),
 * it is heeded whether something was lost, the socket says FIN, lingers, and
 * is closed.
 */
#include <errno.h>
#include <sys/socket.h>

#include "../base/sock.h"
#include "../settings/limits.h"
#include "conn_inside.h"

enum {
	DISCARD_READS = 64,	/* per event: others want their turn */
	LINGER_FIRST_LOOK_MS = 2,
};

static void say_lost(struct conn *c)
{
	if (c->told_lost || c->end != CONN_END_PEER_FIN || !c->owner->ops->lost)
		return;
	c->told_lost = true;
	c->owner->ops->lost(c);
}

/* What still comes is nobody's. Returns false at the end of it. */
bool conn_discard(struct conn *c)
{
	char buf[16384];
	int i;

	for (i = 0; i < DISCARD_READS && !c->eof; i++) {
		ssize_t n = recv(c->watch.fd, buf, sizeof(buf), 0);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		c->eof = !n;
		if (!n)
			break;
		c->sent_late = true;
		say_lost(c);
	}
	return !c->eof;
}

/* A server may answer what it read before it ends; that would be lost. */
static bool may_answer(const struct conn *c)
{
	return c->end == CONN_END_PEER_FIN && !c->ours && !c->told_lost;
}

/*
 * When there is no more to wait for the socket is closed; the kernel delivers
 * what a slow reader has not taken yet. Only one that is still sending to
 * nobody gets a reset.
 */
void conn_linger_look(struct conn *c)
{
	int64_t now = loop_clock();
	int64_t since = now - (c->until - LINGER_MS * NS_PER_MS);

	if (!conn_discard(c) ||
	    (!may_answer(c) && !sock_outstanding(c->watch.fd))) {
		conn_close_socket(c);
		return;
	}
	if (now >= c->until) {
		if (c->sent_late)
			conn_reset_socket(c);
		else
			conn_close_socket(c);
		return;
	}
	if (since < LINGER_FIRST_LOOK_MS * NS_PER_MS)
		since = LINGER_FIRST_LOOK_MS * NS_PER_MS;
	if (loop_timer_at(c->owner->loop, &c->timer, now + since) < 0)
		conn_close_socket(c);
}

void conn_linger(struct conn *c)
{
	c->state = CONN_LINGERING;
	c->until = loop_clock() + LINGER_MS * NS_PER_MS;
	c->sent_late = false;
	sock_orderly(c->watch.fd);
	if (!c->eof && !c->shut)	/* to close it says so, too */
		shutdown(c->watch.fd, SHUT_WR);
	conn_linger_look(c);
}

/*
 * Where our application ended first, what the other end sent meanwhile is lost,
 * and then its end must not look like an orderly one.
 */
void conn_all_written(struct conn *c)
{
	int64_t wait = c->unanswered ? UNANSWERED_MS : ANSWERED_MS;

	if (c->lost)
		conn_reset_socket(c);
	else if (!c->ours || c->complete ||
		 loop_timer_in(c->owner->loop, &c->timer, wait * NS_PER_MS) < 0)
		conn_linger(c);
	else
		c->state = CONN_HEEDING;
}

void conn_heed(struct conn *c, const struct wire_msg *msg)
{
	if (!c->ours || c->complete ||
	    (c->state != CONN_DRAINING && c->state != CONN_HEEDING))
		return;
	/* Its FIN crossed ours, and all before it was delivered. */
	if (msg->type == WIRE_FIN && msg->body[0] == WIRE_REASON_FIN &&
	    msg->number == c->reorder.next)
		c->complete = true;
	else
		c->lost = true;
	if (c->state == CONN_HEEDING && c->lost)
		conn_reset_socket(c);
	else if (c->state == CONN_HEEDING)
		conn_linger(c);
}
