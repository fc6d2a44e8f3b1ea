// SPDX-License-Identifier: MIT
/* DNS messages: the few of them that are used here (RFC 1035, chapter 4). */
#include <stdio.h>
#include <string.h>

#include "ramp.h"

enum {
	NAMES = 256,
	HEAD = 12,
	ID = 0,
	FLAGS = 2,		/* and the next one */
	QUESTIONS = 5,		/* low bytes of counts: the high ones are 0 */
	ANSWERS = 7,
	RECORD = 16,		/* an address, its name told by a pointer */
	ADDRESS = 12,		/* where it is in that */
	ADDRESS_LEN = 4,
};

static const uint8_t zone[] = "\3tm3\4test";	/* and the root's 0 */
static const uint8_t record[ADDRESS] = {
	0xc0, HEAD, 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, ADDRESS_LEN,
};

static struct question {
	uint8_t bytes[WIRE_QUERY - WIRE_PREFIX - HEAD];
	size_t len;
} questions[NAMES];

void wire_init(void)
{
	struct question *q;
	int i, len;

	for (i = 0; i < NAMES; i++) {
		q = &questions[i];
		len = snprintf((char *)q->bytes + 1, 5, "q%d", i);
		q->bytes[0] = (uint8_t)len;
		q->len = 1 + (size_t)len;
		memcpy(q->bytes + q->len, zone, sizeof(zone));
		q->len += sizeof(zone);
		memcpy(q->bytes + q->len, "\0\1\0\1", 4);	/* A, IN */
		q->len += 4;
	}
}

size_t wire_query(uint32_t number, uint8_t out[WIRE_QUERY])
{
	static const uint8_t head[HEAD] = {
		[FLAGS] = 0x01, [QUESTIONS] = 1,	/* RD */
	};
	const struct question *q = &questions[number % NAMES];
	uint32_t id = number / NAMES;
	uint8_t *msg = out + WIRE_PREFIX;

	out[0] = 0;
	out[1] = (uint8_t)(HEAD + q->len);
	memcpy(msg, head, HEAD);
	msg[ID] = (uint8_t)(id >> 8);
	msg[ID + 1] = (uint8_t)id;
	memcpy(msg + HEAD, q->bytes, q->len);
	return WIRE_PREFIX + HEAD + q->len;
}

/* Which name a message asks for, or -1. */
static int asked_name(const uint8_t *msg, size_t len)
{
	const uint8_t *at = msg + HEAD;
	int i, name = 0;

	if (len < HEAD + 2 || at[0] < 2 || at[0] > 4 || len < HEAD + 1u + at[0])
		return -1;
	for (i = 2; i <= at[0]; i++) {
		if (at[i] < '0' || at[i] > '9')
			return -1;
		name = name * 10 + at[i] - '0';
	}
	if (name >= NAMES || len < HEAD + questions[name].len ||
	    memcmp(at, questions[name].bytes, questions[name].len) != 0)
		return -1;
	return name;
}

int32_t wire_answered(const uint8_t *msg, size_t len, const char **why)
{
	const uint8_t *told;
	int name;

	*why = "it is no answer to a query of ours";
	name = asked_name(msg, len);
	if (name < 0 || !(msg[FLAGS] & 0x80))
		return -1;
	*why = "it is cut short (TC)";
	if (msg[FLAGS] & 0x02)
		return -1;
	*why = "it says that there is an error (RCODE)";
	if (msg[FLAGS + 1] & 0x0f)
		return -1;
	*why = "it does not have one address, the one of that name";
	told = msg + HEAD + questions[name].len;
	if (msg[ANSWERS] != 1 ||
	    len < HEAD + questions[name].len + RECORD ||
	    memcmp(told + ADDRESS, "\xc0\0\2", 3) != 0 ||
	    told[ADDRESS + 3] != name)
		return -1;
	return (int32_t)(((uint32_t)msg[ID] << 8 | msg[ID + 1]) * NAMES +
			 (uint32_t)name);
}

size_t wire_answer(const uint8_t *query, size_t len,
		   uint8_t out[WIRE_PREFIX + WIRE_ANSWER])
{
	int name = asked_name(query, len);
	uint8_t *msg = out + WIRE_PREFIX;
	size_t asked;

	if (name < 0)
		return 0;
	asked = HEAD + questions[name].len;
	out[0] = 0;
	out[1] = (uint8_t)(asked + RECORD);
	memcpy(msg, query, asked);
	msg[FLAGS] |= 0x80;
	msg[ANSWERS] = 1;
	memcpy(msg + asked, record, ADDRESS);
	memcpy(msg + asked + ADDRESS, "\xc0\0\2", 3);	/* 192.0.2. */
	msg[asked + ADDRESS + 3] = (uint8_t)name;
	return WIRE_PREFIX + asked + RECORD;
}
