/* SPDX-License-Identifier: MIT */
/*
 * Reads the pipes, in the order that reader says. A task after each batch of
 * events that named some: all that can be read is known then.
 */
#include "../base/udp_out.h"
#include "../conn/conn.h"
#include "session_inside.h"

/*
 * After so many bytes, or messages, the loop gets its turn, for applications' sockets and
 * other sessions. Small messages cost as much as large ones: who sends a mebibyte of single
 * bytes would take the time of a hundred of full size.
 */
enum { ROUND_MAX = 1 << 20, ROUND_MESSAGES = 4096 };

/* A pipe whose messages are smaller than this in the mean is read by READER_LEAST. */
enum { LARGE = 256 };

static size_t unread(void *arg, unsigned int pipe)
{
	const struct pipe *p = ((struct session *)arg)->pipes[pipe];

	return p ? pipe_unread(p) : 0;
}

static bool expects(void *arg, unsigned int pipe, const struct wire_head *head,
		    uint32_t *number)
{
	struct session *s = arg;

	return s->dialect->expects(s, pipe, head, number);
}

static const struct reader_ops ops = {
	.expects = expects,
	.unread = unread,
};

/* What was gathered lies in the buffer until it is delivered. */
static size_t make_room(struct session *s)
{
	struct pipe_shared *shared = &s->shared;

	if (shared->scratch_size - shared->scratch_used <
	    READER_LEAST + WIRE_MESSAGE_MAX)
		delivery_flush(s);
	if (!s->in.delivery.n)
		shared->scratch_used = 0;
	return shared->scratch_size - shared->scratch_used - WIRE_MESSAGE_MAX;
}

static size_t read_pipe(struct session *s, unsigned int i, size_t most)
{
	struct pipe *p = s->pipes[i];
	size_t got, room = make_room(s);
	uint64_t messages = p->rx_messages;
	struct wire_head head;
	bool known;

	if (most > room)
		most = room;
	if (p->rx_small && most > READER_LEAST)
		most = READER_LEAST;
	got = pipe_read(p, most);
	messages = p->rx_messages - messages;
	s->in.messages += messages;
	p->rx_small = got < messages * LARGE;
	if (s->pipes[i] != p)
		return got;	/* it left by what it brought */
	known = pipe_keeps_order(p) && pipe_head(p, &head);
	reader_was_read(&s->in.reader, i, most, got, known ? &head : NULL,
			p->partial_len);
	return got;
}

static bool stands_still(const struct session *s)
{
	return s->in.paused && !s->stopping;
}

static void read_round(struct task *t)
{
	struct session *s = container_of(t, struct session, in.read);
	size_t got = 0, most;
	int pipe;

	s->in.messages = 0;
	reader_begin(&s->in.reader);
	while (!s->dead && !stands_still(s) && got < ROUND_MAX &&
	       s->in.messages < ROUND_MESSAGES &&
	       (pipe = reader_next(&s->in.reader, &most)) >= 0)
		got += read_pipe(s, (unsigned int)pipe, most);
	reader_end(&s->in.reader);
	delivery_flush(s);
	udp_out_flush(s->engine->udp_out);
	s->shared.scratch_used = 0;
}

/* A pipe that is paused says so only when it is at its end. */
void reading_ready(struct session *s, struct pipe *p)
{
	if (s->dead)
		return;
	reader_ready(&s->in.reader, p->index);
	if (!stands_still(s)) {
		loop_after(s->engine->loop, &s->in.read);
		return;
	}
	read_pipe(s, p->index, READER_MAX);
	delivery_flush(s);
	s->shared.scratch_used = 0;
}

void reading_add(struct session *s, const struct pipe *p)
{
	reader_add(&s->in.reader, p->index, pipe_keeps_order(p));
}

void reading_remove(struct session *s, const struct pipe *p)
{
	reader_remove(&s->in.reader, p->index);
}

void reading_start(struct session *s)
{
	reader_init(&s->in.reader, &ops, s);
	loop_task_init(&s->in.read, read_round);
}

void reading_stop(struct session *s)
{
	loop_task_stop(&s->in.read);
}
