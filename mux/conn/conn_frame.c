/* SPDX-License-Identifier: MIT */
/*
 * A connection's way to the pipes: read from its socket and frame, in one go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../base/sock.h"
#include "../wire/run.h"
#include "conn.h"

static void frame_syn(struct conn *c, struct run *run)
{
	if (!c->syn_pending)
		return;
	run->len += wire_put_syn(run->buf + run->len, c->id, c->dst->bytes,
				 c->dst->port);
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
	c->owner->speech->sent(c, len);
	while (len) {
		size_t part = len < payload ? len : payload;

		wire_put_data(run->buf + run->len, c->id, c->owner->speech->number(c, 0),
			      part);
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
		c->fin_pending = c->owner->speech->no_more;
		c->end = c->in_ended ? CONN_END_PEER_FIN : CONN_END_LOCAL_FIN;
		conn_size_ends(c);
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
	c->eof = !got;
	if (got <= 0) {
		input_ended(c, got);
		return;
	}
	frame_slots(c, run, (size_t)got, payload);
	c->bulky = (size_t)got == asked;
	if (!c->bulky && !c->read_on)
		c->readable = false;
	conn_passes(c, iov, n, (size_t)got);
}

static bool frame_fin(struct conn *c, struct run *run)
{
	enum wire_reason reason = c->fin_pending;

	if (run->messages == RUN_MESSAGES ||
	    run->size - run->len < WIRE_FIN_SIZE)
		return false;
	run->len += wire_put_fin(run->buf + run->len, c->id,
				 c->owner->speech->number(c, reason), reason);
	run->messages++;
	return true;
}

/* Is their end what is next, and no more bytes? */
static bool at_end(struct conn *c)
{
	char byte;
	ssize_t n = recv(c->watch.fd, &byte, 1, MSG_PEEK);

	if (n > 0 && !c->broken)
		return false;
	input_ended(c, n < 0 ? n : 0);
	return true;
}

/* Without credit for more bytes: their end needs none. */
static void look_for_end(struct conn *c)
{
	if (!at_end(c))
		c->owner->speech->starved(c);
}

static void frame_input(struct conn *c, struct run *run, size_t budget,
			size_t payload)
{
	size_t credit = c->owner->speech->credit(c);

	if (credit)
		frame_data(c, run, credit < budget ? credit : budget, payload);
	if (c->readable && !c->owner->speech->credit(c))
		look_for_end(c);
}

static bool reads(const struct conn *c)
{
	return c->readable && !c->fin_pending && c->state == CONN_OPEN;
}

bool conn_starves(const struct conn *c)
{
	return reads(c) && !c->owner->speech->credit(c);
}

/* --- a chunk --- */

static void read_chunk(struct conn *c, size_t size, size_t payload)
{
	struct outlook *o = conn_outlook_new(c);
	struct chunk *chunk = o ? chunk_new(size, payload) : NULL;
	ssize_t got = chunk ? recv(c->watch.fd, chunk->bytes, size, 0) : -1;
	uint32_t i;

	if (got <= 0) {
		free(chunk);	/* conn_frame() finds out why */
		return;
	}
	chunk->size = chunk->back = (size_t)got;
	chunk->first = c->owner->speech->number(c, 0);
	for (i = 1; i < chunk_messages(chunk); i++)
		c->owner->speech->number(c, 0);
	c->owner->speech->sent(c, chunk->size);
	o->chunk = chunk;
	conn_passes(c, &(struct iovec){ chunk->bytes, chunk->size }, 1,
		    chunk->size);
}

void conn_cut(struct conn *c, size_t least, size_t most, size_t payload)
{
	size_t credit = c->owner->speech->credit(c), size;

	if (!reads(c))
		return;
	size = sock_unread(c->watch.fd);
	if (size > most)
		size = most;
	if (size > credit)
		size = credit;
	if (size >= least)
		read_chunk(c, size, payload);
}

static void frame_part(struct conn *c, struct run *run, bool from_end)
{
	struct outlook *o = c->outlook;
	struct chunk_part part = chunk_take(o->chunk, from_end);

	if (!run->messages)
		run->first = part.number;
	wire_put_data(run->buf + run->len, c->id, part.number, part.len);
	memcpy(run->buf + run->len + WIRE_HEADER, part.bytes, part.len);
	run->len += WIRE_HEADER + part.len;
	run->messages++;
	c->tx_bytes += part.len;
	c->unanswered = true;
	if (chunk_left(o->chunk))
		return;
	free(o->chunk);
	o->chunk = NULL;
}

/* The last message went: the end goes with it, if that is next. */
static void look_behind_chunk(struct conn *c)
{
	if (conn_outlook(c)->chunk || !reads(c))
		return;
	if (!c->owner->speech->credit(c))
		look_for_end(c);
	else if (c->ends)
		at_end(c);
}

static void frame_front(struct conn *c, struct run *run, size_t budget)
{
	uint64_t until = c->tx_bytes + budget;
	const struct outlook *o = c->outlook;

	while (o->chunk && run->messages < RUN_MESSAGES &&
	       c->tx_bytes < until &&
	       run->len + WIRE_HEADER + o->chunk->payload <= run->size)
		frame_part(c, run, false);
}

/* --- all of it --- */

static void begin_run(struct conn *c, struct run *run)
{
	run->id = c->id;
	run->first = c->tx_number;
	run->heard = c->rx_messages > 0;
}

/* @fin: an end that is next has its place in @run. */
static bool end_run(struct conn *c, struct run *run, bool fin)
{
	bool cut = conn_outlook(c)->chunk;
	enum wire_reason reason = cut || !fin ? 0 : c->fin_pending;

	if (reason && !frame_fin(c, run))
		reason = 0;
	c->tx_messages += run->messages;
	if (reason)
		conn_fin_framed(c, reason);
	else if (!cut && !c->fin_pending &&
		 (!c->readable || !c->owner->speech->credit(c)))
		conn_idle(c);
	return c->ready;
}

bool conn_frame(struct conn *c, struct run *run, size_t budget, size_t payload)
{
	begin_run(c, run);
	c->owner->speech->frame_first(c, run);
	if (conn_outlook(c)->chunk) {
		frame_front(c, run, budget);
		look_behind_chunk(c);
	} else if (reads(c)) {
		frame_input(c, run, budget, payload);
	}
	return end_run(c, run, true);
}

bool conn_frame_last(struct conn *c, struct run *run)
{
	begin_run(c, run);
	frame_part(c, run, true);
	look_behind_chunk(c);
	return end_run(c, run, false);
}

/* --- the baseline's way to talk --- */

static uint32_t next_number(struct conn *c, uint8_t reason)
{
	(void)reason;
	return c->tx_number++;
}

static size_t any_number_of_bytes(const struct conn *c)
{
	(void)c;
	return SIZE_MAX;
}

static void sent_some(struct conn *c, size_t bytes)
{
	(void)c;
	(void)bytes;
}

static void never_starved(struct conn *c)
{
	(void)c;
}

const struct conn_speech conn_speech_baseline = {
	.frame_first = frame_syn,
	.number = next_number,
	.credit = any_number_of_bytes,
	.sent = sent_some,
	.starved = never_starved,
	.no_more = WIRE_REASON_FIN,
};
