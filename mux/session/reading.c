/* SPDX-License-Identifier: MIT */
/*
 * Reads the pipes, in the order that reader says. A task after each batch of
 * events that named some: all that can be read is known then.
 */
#include <poll.h>

#include "../base/udp_out.h"
#include "../conn/conn.h"
#include "session_inside.h"

_Static_assert(READER_MAX <= ENGINE_SCRATCH - 2 * WIRE_LARGE_MAX, "what one read brings fits");

/*
 * After so many bytes, or messages, the loop gets its turn, for applications' sockets and
 * other sessions. Small messages cost as much as large ones: who sends a mebibyte of single
 * bytes would take the time of a hundred of full size. Where others have sessions here, it gets
 * its turn when the session's budget of time is used up, too.
 */
enum { ROUND_MAX = 1 << 20, ROUND_MESSAGES = 4096 };

/*
 * A read cannot be cut short, and what a message costs is known when it was taken: to open
 * and reset connections takes a hundred times as long as to be pinged. So how much is read at once
 * follows from how long the last read took, as far as somebody else would wait for it.
 */
enum { READ_US = 50, READ_MIN = 512, READ_FIRST = 4096 };

/* A pipe whose messages are smaller than this in the mean is read by READER_LEAST. */
enum { LARGE = 256 };

static size_t unread(void *arg, unsigned int pipe)
{
	const struct pipe *p = ((struct session *)arg)->pipes[pipe];

	return p ? pipe_unread(p) : 0;
}

/* One call, not one for each. Stamps of acknowledgements are no bytes: they are POLLERR alone. */
static uint64_t came(void *arg, uint64_t pipes)
{
	const struct session *s = arg;
	struct pollfd asked[PIPES_MAX];
	uint64_t bit[PIPES_MAX], found = 0;
	unsigned int n = 0, i;

	for (i = 0; i < PIPES_MAX; i++) {
		const struct pipe *p = s->pipes[i];

		if (!p || p->watch.fd < 0 || !(pipes >> i & 1))
			continue;
		bit[n] = UINT64_C(1) << i;
		if (p->layer && p->layer->pending)
			found |= bit[n];
		asked[n++] = (struct pollfd){ .fd = p->fd, .events = POLLIN };
	}
	if (poll(asked, n, 0) <= 0)
		return found;
	for (i = 0; i < n; i++) {
		if (asked[i].revents & POLLIN)
			found |= bit[i];
	}
	return found;
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
	.came = came,
};

/* What was gathered lies in the buffer until it is delivered. */
static size_t make_room(struct session *s)
{
	struct pipe_shared *shared = &s->shared;
	size_t largest = pipe_largest(shared);

	if (shared->scratch_size - shared->scratch_used <
	    READER_LEAST + largest)
		delivery_flush(s);
	if (!s->in.delivery.n)
		shared->scratch_used = 0;
	return shared->scratch_size - shared->scratch_used - largest;
}

static void learn(struct pipe *p, size_t got, int64_t took)
{
	const int64_t ns = READ_US * NS_PER_US;

	if (took > ns)
		p->rx_most = got * (size_t)ns / (size_t)took;
	else if (p->rx_most < READER_MAX)
		p->rx_most *= 2;
	if (p->rx_most < READ_MIN)
		p->rx_most = READ_MIN;
}

static size_t read_pipe(struct session *s, unsigned int i, size_t most)
{
	struct pipe *p = s->pipes[i];
	size_t got, room = make_room(s);
	uint64_t messages = p->rx_messages;
	struct wire_head head;
	int64_t took;
	bool known;

	if (most > room)
		most = room;
	if (p->rx_small && most > READER_LEAST)
		most = READER_LEAST;
	if (budget_is_watched(s->budget) && most > p->rx_most)
		most = p->rx_most;
	got = pipe_read(p, most);
	took = budget_used(s->budget);
	messages = p->rx_messages - messages;
	s->in.messages += messages;
	if (messages)		/* a part of one, such as its header, tells nothing */
		p->rx_small = got < messages * LARGE;
	if (s->pipes[i] != p)
		return got;	/* it left by what it brought */
	if (took)
		learn(p, got, took);
	known = pipe_keeps_order(p) && pipe_head(p, &head);
	reader_was_read(&s->in.reader, i, most, got, known ? &head : NULL,
			p->partial.len);
	return got;
}

static bool stands_still(const struct session *s)
{
	return s->in.paused && !s->stopping;
}

/*
 * All have too much, and who has most is about to shed some of it. Did every session read
 * on until then, each would add to that what a round brings.
 */
static bool awaits_relief(const struct session *s)
{
	return !list_empty(&s->engine->relief.node);
}

static void read_round(struct task *t)
{
	struct session *s = container_of(t, struct session, in.read);
	size_t got = 0, most;
	int pipe;

	if (awaits_relief(s) || !budget_begin(s->budget)) {
		loop_after(s->engine->loop, t);
		return;
	}
	s->in.messages = 0;
	reader_begin(&s->in.reader);
	while (!s->dead && !stands_still(s) && got < ROUND_MAX &&
	       s->in.messages < ROUND_MESSAGES && !awaits_relief(s) &&
	       budget_goes_on(s->budget) &&
	       (pipe = reader_next(&s->in.reader, &most)) >= 0)
		got += read_pipe(s, (unsigned int)pipe, most);
	reader_end(&s->in.reader);
	delivery_flush(s);
	udp_out_flush(s->engine->udp_out);
	budget_end(s->budget);
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
	s->pipes[p->index]->rx_most = READ_FIRST;
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
