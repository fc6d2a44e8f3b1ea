/* SPDX-License-Identifier: MIT */
/*
 * A connection's way to the pipes: read from its socket and frame, in one go.
 */
#include <errno.h>
#include <sys/uio.h>

#include "../wire/run.h"
#include "conn.h"

static void frame_syn(struct conn *c, struct run *run)
{
	run->len += wire_put_syn(run->buf + run->len, c->id, c->dst,
				 c->dst_port);
	run->messages++;
	c->tx_number++;
	c->syn_pending = false;
}

/* Headers in front of the @len bytes that lie in slots of @payload. */
static void frame_slots(struct conn *c, struct run *run, size_t len,
			size_t payload)
{
	c->tx_bytes += len;
	c->unanswered = true;
	while (len) {
		size_t part = len < payload ? len : payload;

		wire_put_data(run->buf + run->len, c->id, c->tx_number++, part);
		run->len += WIRE_HEADER + part;
		run->messages++;
		len -= part;
	}
}

static void input_ended(struct conn *c, ssize_t n)
{
	if (n < 0 && errno == EINTR)
		return;
	if (n < 0 && errno == EAGAIN) {
		c->readable = false;
		return;
	}
	c->readable = false;
	if (n < 0 || c->broken) {
		c->fin_pending = WIRE_REASON_RST;
		c->end = CONN_END_LOCAL_RESET;
	} else {
		c->fin_pending = WIRE_REASON_FIN;
		c->end = CONN_END_LOCAL_FIN;
	}
}

/*
 * One read straight into the places of the payloads. Returns when the run is
 * full, the budget spent or the socket empty.
 */
static void frame_data(struct conn *c, struct run *run, size_t budget,
		       size_t payload)
{
	struct iovec iov[RUN_MESSAGES];
	size_t at = run->len;
	size_t asked = 0;
	int n = 0;
	ssize_t got;

	while (run->messages + (uint32_t)n < RUN_MESSAGES && asked < budget &&
	       at + WIRE_HEADER + payload <= run->size) {
		size_t part = budget - asked < payload ?
			budget - asked : payload;

		iov[n].iov_base = run->buf + at + WIRE_HEADER;
		iov[n++].iov_len = part;
		at += WIRE_HEADER + payload;
		asked += part;
	}
	if (!n)
		return;
	got = readv(c->watch.fd, iov, n);
	if (got <= 0) {
		input_ended(c, got);
		return;
	}
	frame_slots(c, run, (size_t)got, payload);
	if ((size_t)got < asked && !c->read_on)
		c->readable = false;
}

static bool frame_fin(struct conn *c, struct run *run)
{
	enum wire_reason reason = c->fin_pending;

	if (run->messages == RUN_MESSAGES ||
	    run->size - run->len < WIRE_FIN_SIZE)
		return false;
	run->len += wire_put_fin(run->buf + run->len, c->id, c->tx_number++,
				 reason);
	run->messages++;
	return true;
}

bool conn_frame(struct conn *c, struct run *run, size_t budget, size_t payload)
{
	enum wire_reason reason;

	run->id = c->id;
	run->first = c->tx_number;
	run->heard = c->rx_messages > 0;
	if (c->syn_pending)
		frame_syn(c, run);
	if (c->readable && !c->fin_pending && c->state == CONN_OPEN)
		frame_data(c, run, budget, payload);
	reason = c->fin_pending;
	if (reason && !frame_fin(c, run))
		reason = 0;
	c->tx_messages += run->messages;
	if (reason)
		conn_fin_framed(c, reason);
	else if (!c->readable && !c->fin_pending)
		conn_idle(c);
	return c->ready;
}
