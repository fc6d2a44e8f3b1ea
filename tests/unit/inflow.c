/* SPDX-License-Identifier: MIT */
#include "inflow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint16_t body_len(uint16_t conn, uint32_t index)
{
	uint32_t h = (conn * 2654435761u + index) * 2246822519u;

	if (conn % 2 == 0 || h >> 30 == 3)
		return WIRE_PAYLOAD_MAX;
	return (uint16_t)(1 + (h >> 8) % 1448);
}

static size_t size_of(const struct inflow_message *m)
{
	return WIRE_HEADER + (size_t)body_len(m->conn, m->index);
}

/* --- what comes out --- */

static void check(struct inflow *w, unsigned int conn, const uint8_t *body,
		  uint16_t len)
{
	struct inflow_conn *c = &w->conn[conn];
	uint32_t mark = conn << 24 ^ c->delivered;

	assert_int_equal(len, body_len((uint16_t)conn, c->delivered));
	assert_memory_equal(body, &mark, len < sizeof(mark) ? len : sizeof(mark));
	c->delivered++;
}

static void deliver(struct inflow *w, const struct inflow_message *m)
{
	static uint8_t body[WIRE_PAYLOAD_MAX];
	struct inflow_conn *c = &w->conn[m->conn];
	uint32_t mark = (uint32_t)m->conn << 24 ^ m->index;
	struct wire_msg msg = {
		.type = WIRE_DATA, .id = (uint16_t)(m->conn + 1),
		.number = c->first + m->index, .body = body,
		.body_len = body_len(m->conn, m->index),
	};
	size_t before = reorder_payload(&c->q);
	enum reorder_verdict verdict;
	struct reorder_early *held;

	if (c->reset)
		return;
	memcpy(body, &mark, sizeof(mark));
	verdict = reorder_put(&c->q, &msg, 0);
	if (verdict == REORDER_DUE) {
		check(w, m->conn, body, msg.body_len);
		while ((held = reorder_take(&c->q))) {
			check(w, m->conn, held->body, held->body_len);
			reorder_release(held);
		}
	} else {
		assert_int_equal(verdict, REORDER_EARLY);
	}
	w->held += reorder_payload(&c->q) - before;
	if (w->held > w->most_held)
		w->most_held = w->held;
}

/* --- what the reader asks --- */

static bool expects(void *arg, unsigned int pipe, const struct wire_head *head,
		    uint32_t *number)
{
	struct inflow *w = arg;
	const struct inflow_conn *c = &w->conn[head->id - 1];

	assert_in_range(head->id, 1, w->conns);
	assert_true(pipe < w->pipes);
	*number = c->q.next;
	return !c->reset;
}

size_t inflow_unread(struct inflow *w, unsigned int pipe)
{
	const struct inflow_pipe *l = &w->pipe[pipe];
	size_t sum = 0;
	unsigned int i;

	for (i = l->read; i < l->came; i++)
		sum += size_of(&l->message[i]);
	return sum - (sum ? l->had : 0);
}

static size_t unread(void *arg, unsigned int pipe)
{
	return inflow_unread(arg, pipe);
}

static uint64_t came(void *arg, uint64_t pipes)
{
	struct inflow *w = arg;
	uint64_t found = 0;
	unsigned int i;

	for (i = 0; i < w->pipes; i++) {
		if (pipes >> i & 1 && inflow_unread(w, i))
			found |= UINT64_C(1) << i;
	}
	return found;
}

static const struct reader_ops ops = {
	.expects = expects,
	.unread = unread,
	.came = came,
};

/* --- reading --- */

/*
 * What is called a gap with one connection has not come. With many it may, and
 * lie behind what is early of another one; but a pipe has waited for it, or
 * something is in the network.
 */
static void check_gaps(struct inflow *w)
{
	unsigned int i;

	for (i = 0; i < READER_GAPS && w->rising; i++) {
		const struct reader_gap *gap = &w->reader.gap[i];

		if (!gap->id || !memcmp(gap, &w->gap[i], sizeof(*gap)))
			continue;
		if (w->conns == 1)
			assert_false(w->conn[0].came[gap->number -
						     w->conn[0].first]);
		else if (w->all_came)
			assert_true(w->reader.read - gap->since > INFLOW_ROUND);
	}
	memcpy(w->gap, w->reader.gap, sizeof(w->gap));
}

size_t inflow_read(struct inflow *w, unsigned int pipe, size_t most)
{
	struct inflow_pipe *l = &w->pipe[pipe];
	struct wire_head head;
	const struct inflow_message *m;
	size_t left = most;
	bool known;

	check_gaps(w);
	while (left && l->read < l->came) {
		size_t need = size_of(&l->message[l->read]) - l->had;

		if (left < need) {
			l->had += left;
			left = 0;
			break;
		}
		left -= need;
		l->had = 0;
		deliver(w, &l->message[l->read++]);
	}
	m = &l->message[l->read];
	known = l->had >= WIRE_HEADER && w->reader.pipe[pipe].ordered;
	if (known)
		head = (struct wire_head){ (uint16_t)(m->conn + 1),
			w->conn[m->conn].first + m->index, size_of(m) };
	reader_was_read(&w->reader, pipe, most, most - left,
			known ? &head : NULL, l->had);
	return most - left;
}

void inflow_come(struct inflow *w, unsigned int pipe, unsigned int n)
{
	struct inflow_pipe *l = &w->pipe[pipe];

	while (n-- && l->came < l->sent) {
		const struct inflow_message *m = &l->message[l->came++];

		w->conn[m->conn].came[m->index] = 1;
	}
}

/* Bytes read; what can be read and is not all due is never left for ever. */
size_t inflow_round(struct inflow *w)
{
	size_t got = 0, most, waiting = 0;
	unsigned int i;
	int pipe;

	reader_begin(&w->reader);
	for (i = 0; i < w->pipes; i++) {
		if (inflow_unread(w, i)) {
			reader_ready(&w->reader, i);
			waiting++;
		}
	}
	while (got < INFLOW_ROUND && (pipe = reader_next(&w->reader, &most)) >= 0) {
		assert_in_range(most, 1, READER_MAX);
		got += inflow_read(w, (unsigned int)pipe, most);
		/* Something may come while the round goes on. */
		if (!random_below(w->r, 4)) {
			i = random_below(w->r, w->pipes);
			if (!w->pipe[i].stalled)
				inflow_come(w, i, 8);
		}
	}
	reader_end(&w->reader);
	assert_true(!waiting || got);
	return got;
}

/* --- worlds --- */

void inflow_init(struct inflow *w, struct random *r, unsigned int pipes,
		       unsigned int conns)
{
	unsigned int i;

	memset(w, 0, sizeof(*w));
	w->r = r;
	w->pipes = pipes;
	w->conns = conns;
	w->rising = true;
	reader_init(&w->reader, &ops, w);
	for (i = 0; i < pipes; i++) {
		w->pipe[i].message = malloc((INFLOW_MESSAGES + 1) *
					    sizeof(struct inflow_message));
		reader_add(&w->reader, i, true);
	}
	for (i = 0; i < conns; i++) {
		struct inflow_conn *c = &w->conn[i];

		/* Every other one passes the end of the circle of numbers. */
		c->first = random_below(r, 2) ? 0u - random_below(r, 300)
					      : (uint32_t)random_next(r);
		c->lost = UINT32_MAX;
		c->came = calloc(INFLOW_MESSAGES + 1, 1);
		reorder_init(&c->q, c->first);
	}
}

void inflow_fini(struct inflow *w)
{
	unsigned int i;

	for (i = 0; i < w->pipes; i++)
		free(w->pipe[i].message);
	for (i = 0; i < w->conns; i++) {
		reorder_fini(&w->conn[i].q);
		free(w->conn[i].came);
	}
}

void inflow_put(struct inflow *w, unsigned int pipe, unsigned int conn)
{
	struct inflow_pipe *l = &w->pipe[pipe];
	struct inflow_conn *c = &w->conn[conn];
	uint32_t index = c->sent++;

	if (index == c->lost)
		return;
	l->message[l->sent++] = (struct inflow_message){ (uint16_t)conn, index };
	l->message[l->sent] = l->message[l->sent - 1];
}

/* Two neighbours change places, where nothing of them has come. */
void inflow_fall(struct inflow *w, unsigned int pipe)
{
	struct inflow_pipe *l = &w->pipe[pipe];
	struct inflow_message m;

	if (w->rising || l->sent < l->came + 2)
		return;
	m = l->message[l->sent - 1];
	l->message[l->sent - 1] = l->message[l->sent - 2];
	l->message[l->sent - 2] = m;
}

void inflow_reset(struct inflow *w, unsigned int conn)
{
	struct inflow_conn *c = &w->conn[conn];

	w->held -= reorder_payload(&c->q);
	reorder_fini(&c->q);
	c->reset = true;
}

bool inflow_is_read(const struct inflow *w)
{
	unsigned int i;

	for (i = 0; i < w->pipes; i++) {
		if (w->pipe[i].read < w->pipe[i].sent)
			return false;
	}
	return true;
}

void inflow_check_end(const struct inflow *w)
{
	unsigned int i;

	for (i = 0; i < w->conns; i++) {
		const struct inflow_conn *c = &w->conn[i];

		if (c->reset)
			continue;
		assert_int_equal(c->delivered,
				 c->sent > c->lost ? c->lost : c->sent);
		if (c->sent <= c->lost)
			assert_int_equal(reorder_count(&c->q), 0);
	}
}

/* The network: each pipe lets through what it likes. */
void inflow_carry(struct inflow *w, bool all)
{
	unsigned int i;

	for (i = 0; i < w->pipes; i++) {
		struct inflow_pipe *l = &w->pipe[i];

		if (all) {
			inflow_come(w, i, INFLOW_MESSAGES);
			continue;
		}
		if (!random_below(w->r, 200))
			l->stalled = !l->stalled;
		if (!random_below(w->r, 200))
			l->trickles = !l->trickles;
		if (!l->stalled && !random_below(w->r, 2))
			inflow_come(w, i, l->trickles ? 1 : random_below(w->r, 64));
	}
}
