/* SPDX-License-Identifier: MIT */
/*
 * The reorder queue against a naive model. The input is a program: the number
 * expected first, then two bytes an operation. The model is a bit for each
 * number of a short stretch from the first on, so it knows in its own way what
 * was delivered, what is held and what comes next.
 */
#include <stdint.h>
#include <string.h>

#include "mux/conn/reorder.h"
#include "check.h"

enum { SPAN = 1024 };		/* numbers that the model follows */

struct model {
	uint32_t first;
	uint32_t next;			/* index of the number expected */
	uint8_t held[SPAN];
	uint8_t body_len[SPAN];
	uint32_t count;
	size_t payload;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a message holds follows from its number, so it can be told later. */
static uint8_t filler(uint32_t number)
{
	return (uint8_t)(number * 151 + 7);
}

static enum reorder_verdict put(struct reorder *q, uint32_t number,
				uint8_t body_len)
{
	uint8_t body[256];
	struct wire_msg msg = {
		.type = body_len == 1 ? WIRE_FIN : WIRE_DATA,
		.id = 1,
		.number = number,
		.body_len = body_len,
		.body = body,
	};

	memset(body, filler(number), sizeof(body));
	return reorder_put(q, &msg, number);
}

static size_t payload_of(uint8_t body_len)
{
	return body_len == 1 ? 0 : body_len;	/* a FIN is none */
}

static void compare(const struct reorder *q, const struct model *m)
{
	check(q->next == m->first + m->next);
	check(reorder_count(q) == m->count);
	check(reorder_payload(q) == m->payload);
	check(reorder_bytes(q) >= m->payload +
	      m->count * sizeof(struct reorder_early));
	check(reorder_bytes(q) <= m->payload + m->count * 64 +
	      2 * SPAN * sizeof(void *) + 2 * sizeof(*q->waiting));
	check(!q->waiting == !m->count);
}

static void do_put(struct reorder *q, struct model *m, uint32_t index,
		   uint8_t body_len)
{
	enum reorder_verdict got = put(q, m->first + index, body_len);

	if (index < m->next || m->held[index]) {
		check(got == REORDER_DUPLICATE);
	} else if (index == m->next) {
		check(got == REORDER_DUE);
		m->next++;
	} else {
		check(got == REORDER_EARLY);
		m->held[index] = 1;
		m->body_len[index] = body_len;
		m->count++;
		m->payload += payload_of(body_len);
	}
}

static void do_take(struct reorder *q, struct model *m)
{
	struct reorder_early *held = reorder_take(q);
	uint32_t number = m->first + m->next;

	if (m->next >= SPAN || !m->held[m->next]) {
		check(!held);
		return;
	}
	check(held && held->number == number && held->came_at == number);
	check(held->body_len == m->body_len[m->next]);
	check(held->type == (held->body_len == 1 ? WIRE_FIN : WIRE_DATA));
	for (uint16_t i = 0; i < held->body_len; i++)
		check(held->body[i] == filler(number));
	m->count--;
	m->payload -= payload_of(m->body_len[m->next]);
	m->held[m->next++] = 0;
	reorder_release(held);
}

/* Numbers outside the stretch: behind it, or beyond the window. */
static void do_put_outside(struct reorder *q, const struct model *m,
			   uint32_t distance)
{
	uint32_t next = m->first + m->next;

	check(put(q, next - 1 - distance, 9) == REORDER_DUPLICATE);
	check(put(q, next + WIRE_NUMBER_WINDOW + 1 + distance, 9) ==
	      REORDER_TOO_FAR);
}

static void do_fini(struct reorder *q, struct model *m)
{
	reorder_fini(q);
	memset(m->held, 0, sizeof(m->held));
	m->count = 0;
	m->payload = 0;
}

/* Two bytes: three bits of what, ten of where, the rest of how much. */
static void step(struct reorder *q, struct model *m, uint8_t a, uint8_t b)
{
	uint32_t index = b | (a & 3u) << 8;
	uint8_t body_len = (uint8_t)(1 + (a >> 5) * 36);

	switch (a >> 2 & 7) {
	case 0:
		do_take(q, m);
		break;
	case 1:
		do_put_outside(q, m, index << 18);
		break;
	case 2:
		if (b == 0)
			do_fini(q, m);
		break;
	case 3:		/* the one expected, and all that this releases */
		if (m->next < SPAN)
			do_put(q, m, m->next, body_len);
		while (m->next < SPAN && m->held[m->next])
			do_take(q, m);
		break;
	default:
		do_put(q, m, index, body_len);
	}
	compare(q, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model m;
	struct reorder q;

	if (size < sizeof(m.first))
		return 0;
	memset(&m, 0, sizeof(m));
	memcpy(&m.first, data, sizeof(m.first));
	reorder_init(&q, m.first);
	for (size_t at = sizeof(m.first); at + 1 < size; at += 2)
		step(&q, &m, data[at], data[at + 1]);
	reorder_fini(&q);
	check(!reorder_bytes(&q) && !reorder_count(&q) && !reorder_payload(&q));
	return 0;
}
