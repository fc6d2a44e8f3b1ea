/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ext_message.h"

const struct ext_layout ext_layout[EXT_TYPES] = {
	{ WIRE_HELLO, 44 },	{ WIRE_WELCOME, 31 },	{ WIRE_SYNACK, 20 },
	{ WIRE_WINDOW, 19 },	{ WIRE_PING, 25 },	{ WIRE_PONG, 33 },
	{ WIRE_GOODBYE, 10 },	{ WIRE_HINT, 21 },	{ WIRE_ACK, 22 },
	{ WIRE_OPEN, 20 },	{ WIRE_DATAGRAM, 15 },	{ WIRE_LISTEN, 16 },
	{ WIRE_LISTENING, 14 },	{ WIRE_PATH, 17 },	{ WIRE_TOO_BIG, 13 },
};

int ext_is_downlink(enum wire_ext_type type, uint16_t id)
{
	switch (type) {
	case WIRE_WELCOME:
	case WIRE_LISTENING:
	case WIRE_TOO_BIG:
		return 1;
	case WIRE_SYNACK:
		return id <= 32767;
	case WIRE_OPEN:
		return id > 32767;
	default:
		return 0;
	}
}

enum wire_ext_result ext_decode_way(const uint8_t *body, size_t len,
				    uint32_t number, int downlink,
				    struct wire_ext *ext)
{
	uint8_t *block = malloc(len);
	struct wire_msg msg = {
		.type = WIRE_DATA,
		.number = number,
		.body = block,
		.body_len = (uint16_t)len,
	};
	enum wire_ext_result result;

	memcpy(block, body, len);
	memset(ext, 0xA5, sizeof(*ext));
	result = wire_ext_get(&msg, downlink, ext);
	if (result == WIRE_EXT_OK && ext->type == WIRE_DATAGRAM) {
		/* The block goes: let the payload be that of the caller. */
		assert_ptr_equal(ext->datagram.payload +
				 ext->datagram.payload_len, block + len);
		ext->datagram.payload = body + (ext->datagram.payload - block);
	}
	free(block);
	return result;
}

enum wire_ext_result ext_decode(const uint8_t *body, size_t len,
				uint32_t number, struct wire_ext *ext)
{
	uint16_t id = len < 3 ? 0 : (uint16_t)(body[1] | body[2] << 8);

	return ext_decode_way(body, len, number,
			      ext_is_downlink(body[0], id), ext);
}

static void random_address(struct random *r, struct destination *m, int none)
{
	static const uint8_t kinds[] = { DESTINATION_IPV4, DESTINATION_IPV6,
					 DESTINATION_NAME, DESTINATION_NONE };

	m->port = (uint16_t)random_next(r);
	m->kind = kinds[random_below(r, none ? 4 : 3)];
	m->len = m->kind == DESTINATION_NONE ? 0
	       : m->kind == DESTINATION_IPV4 ? 4
	       : m->kind == DESTINATION_IPV6 ? 16
	       : (uint8_t)random_range(r, 1, 255);
	for (int i = 0; i < m->len; i++)
		m->bytes[i] = (uint8_t)random_range(r, 1, 255);
}

static void random_open(struct random *r, struct wire_open *m)
{
	m->protocol = random_below(r, 2) ? WIRE_PROTOCOL_UDP
					 : WIRE_PROTOCOL_TCP;
	random_address(r, &m->to, m->protocol == WIRE_PROTOCOL_UDP);
	if (m->id > WIRE_ID_LP_MAX && m->protocol == WIRE_PROTOCOL_TCP &&
	    m->to.kind != DESTINATION_NAME)
		m->to = destination_listener((uint16_t)random_next(r), &m->to);
	m->window = (uint32_t)random_next(r);
}

static void random_datagram(struct random *r, struct wire_datagram *m)
{
	static uint8_t payload[WIRE_PAYLOAD_MAX];

	random_fill(r, payload, sizeof(payload));
	random_address(r, &m->at, 1);
	m->payload = payload;
	m->payload_len = (uint16_t)random_below(
		r, WIRE_MESSAGE_MAX - 15 - m->at.len + 1);
}

static void random_ack(struct random *r, struct wire_ack *m)
{
	m->time_us = random_next(r);
	m->reorder_bytes = (uint32_t)random_next(r);
	m->pipes = (uint8_t)random_next(r);
	for (int i = 0; i < m->pipes; i++) {
		m->pipe[i].pipe = (uint8_t)random_next(r);
		m->pipe[i].incarnation = (uint32_t)random_next(r);
		m->pipe[i].received = random_next(r);
	}
}

static void random_hello(struct random *r, struct wire_hello *m)
{
	m->version = (uint8_t)random_next(r);
	m->features = (uint32_t)random_next(r);
	random_fill(r, m->session, WIRE_EXT_SESSION_SIZE);
	m->pipes = (uint8_t)random_range(r, 1, WIRE_EXT_PIPES_MAX);
	m->pipe = (uint8_t)random_below(r, m->pipes);
	m->incarnation = (uint32_t)random_next(r);
	m->path = (uint8_t)random_next(r);
	m->path_flags = (uint8_t)random_next(r);
	m->path_cost = (uint16_t)random_next(r);
	m->reorder_limit = (uint32_t)random_next(r);
}

static void random_welcome(struct random *r, struct wire_welcome *m)
{
	m->version = (uint8_t)random_next(r);
	m->features = (uint32_t)random_next(r);
	m->status = (uint8_t)random_next(r);
	m->connections = (uint16_t)random_next(r);
	m->conn_early = (uint32_t)random_next(r);
	m->session_early = (uint32_t)random_next(r);
	m->wait_s = (uint16_t)random_next(r);
	m->reorder_limit = (uint32_t)random_next(r);
}

void ext_random(struct random *r, enum wire_ext_type type,
		struct wire_ext *ext)
{
	uint16_t id = (uint16_t)random_range(r, 1, 65535);

	memset(ext, 0, sizeof(*ext));
	ext->type = type;
	if (type == WIRE_OPEN || type == WIRE_SYNACK)
		ext->number = (uint32_t)random_next(r);
	switch (type) {
	case WIRE_HELLO:
		random_hello(r, &ext->hello);
		break;
	case WIRE_WELCOME:
		random_welcome(r, &ext->welcome);
		break;
	case WIRE_SYNACK:
		ext->synack.id = id;
		ext->synack.result = (uint8_t)random_next(r);
		ext->synack.offset = random_next(r);
		break;
	case WIRE_WINDOW:
		ext->window.id = id;
		ext->window.offset = random_next(r);
		break;
	case WIRE_PONG:
		ext->ping.received_us = random_next(r);
		/* fall through */
	case WIRE_PING:
		ext->ping.token = random_next(r);
		ext->ping.sent_us = random_next(r);
		break;
	case WIRE_GOODBYE:
		ext->goodbye.reason = (uint8_t)random_next(r);
		break;
	case WIRE_HINT:
		ext->hint.id = id;
		ext->hint.priority = (uint8_t)random_next(r);
		ext->hint.remaining = random_next(r);
		ext->hint.paths = (uint8_t)random_next(r);
		break;
	case WIRE_ACK:
		random_ack(r, &ext->ack);
		break;
	case WIRE_OPEN:
		ext->open.id = id;
		random_open(r, &ext->open);
		break;
	case WIRE_DATAGRAM:
		ext->datagram.id = id;
		random_datagram(r, &ext->datagram);
		break;
	case WIRE_LISTEN:
		ext->listen.listener = (uint16_t)random_next(r);
		ext->listen.protocol = (uint8_t)random_next(r);
		random_address(r, &ext->listen.at, 1);
		break;
	case WIRE_LISTENING:
		ext->listening.listener = (uint16_t)random_next(r);
		ext->listening.result = (uint8_t)random_next(r);
		ext->listening.port = (uint16_t)random_next(r);
		break;
	case WIRE_PATH:
		ext->path.path = (uint8_t)random_next(r);
		ext->path.state = (uint8_t)random_next(r);
		ext->path.cost = (uint16_t)random_next(r);
		ext->path.serial = (uint32_t)random_next(r);
		break;
	case WIRE_TOO_BIG:
		ext->too_big.id = id;
		ext->too_big.mtu = (uint16_t)random_next(r);
		break;
	case WIRE_EXT_NONE:
		break;
	}
}
