/* SPDX-License-Identifier: MIT */
#include "socks.h"

#include <string.h>

#include "../mux/wire/wire_ext.h"
#include "target.h"

enum { VERSION = 5, NO_AUTHENTICATION = 0, NO_METHOD = 0xFF };
enum { CONNECT = 1, UDP_ASSOCIATE = 3 };

/* The pieces, in the order they come. */
enum state {
	GREETING,	/* version, number of methods */
	METHODS,
	REQUEST,	/* version, command, reserved, type of address */
	NAME_LENGTH,
	ADDRESS,	/* and port */
	DONE,
};

static void expect(struct socks *s, enum state state, unsigned int need)
{
	s->state = (uint8_t)state;
	s->need = (uint16_t)need;
	s->have = 0;
}

void socks_init(struct socks *s)
{
	memset(s, 0, sizeof(*s));
	expect(s, GREETING, 2);
}

size_t socks_need(const struct socks *s)
{
	return (size_t)(s->need - s->have);
}

static void answer(struct socks *s, enum socks_reply reply,
		   const struct destination *at)
{
	uint8_t *out = s->out + 4;

	s->out[0] = VERSION;
	s->out[1] = (uint8_t)reply;
	s->out[2] = 0;
	s->out[3] = at->kind == DESTINATION_IPV6 ? SOCKS_TYPE_IPV6 :
						   SOCKS_TYPE_IPV4;
	memcpy(out, at->bytes, at->len);
	out += at->len;
	*out++ = (uint8_t)(at->port >> 8);
	*out++ = (uint8_t)at->port;
	s->out_len = (uint8_t)(out - s->out);
}

void socks_answer(struct socks *s, enum socks_reply reply)
{
	const struct destination nowhere = destination_ipv4((uint8_t[4]){ 0 },
							    0);

	answer(s, reply, &nowhere);
}

void socks_grant(struct socks *s, const struct destination *at)
{
	answer(s, SOCKS_SUCCEEDED, at);
}

/* There is no word for a limit; and a name that is not found has no host. */
enum socks_reply socks_reply_to(uint8_t result)
{
	switch (result) {
	case WIRE_SYNACK_CONNECTED:
		return SOCKS_SUCCEEDED;
	case WIRE_SYNACK_REFUSED:
		return SOCKS_REFUSED;
	case WIRE_SYNACK_UNREACHABLE:
	case WIRE_SYNACK_NO_NAME:
		return SOCKS_HOST_UNREACHABLE;
	case WIRE_SYNACK_TIMEOUT:
		return SOCKS_TTL_EXPIRED;
	case WIRE_SYNACK_DENIED:
		return SOCKS_NOT_ALLOWED;
	default:
		return SOCKS_FAILURE;
	}
}

static enum socks_verdict reject(struct socks *s, enum socks_reply reply)
{
	expect(s, DONE, 0);
	socks_answer(s, reply);
	return SOCKS_REJECT;
}

static enum socks_verdict garbage(struct socks *s)
{
	expect(s, DONE, 0);
	return SOCKS_GARBAGE;
}

static enum socks_verdict choose(struct socks *s, uint8_t method)
{
	s->out[0] = VERSION;
	s->out[1] = method;
	s->out_len = 2;
	if (method == NO_METHOD) {
		expect(s, DONE, 0);
		return SOCKS_REJECT;
	}
	expect(s, REQUEST, 4);
	return SOCKS_SAY;
}

static enum socks_verdict take_greeting(struct socks *s)
{
	if (s->in[0] != VERSION)
		return garbage(s);
	if (!s->in[1])
		return choose(s, NO_METHOD);
	expect(s, METHODS, s->in[1]);
	return SOCKS_MORE;
}

static enum socks_verdict take_methods(struct socks *s)
{
	bool offered = memchr(s->in, NO_AUTHENTICATION, s->need) != NULL;

	return choose(s, offered ? NO_AUTHENTICATION : NO_METHOD);
}

/*
 * The whole request is read even if it will be rejected: closing a socket with
 * unread bytes in it would reset it, and the reply might be lost.
 */
static enum socks_verdict take_request(struct socks *s)
{
	if (s->in[0] != VERSION)
		return garbage(s);
	s->command = s->in[1];
	s->address_type = s->in[3];
	switch (s->address_type) {
	case SOCKS_TYPE_IPV4:
		expect(s, ADDRESS, 4 + 2);
		return SOCKS_MORE;
	case SOCKS_TYPE_IPV6:
		expect(s, ADDRESS, 16 + 2);
		return SOCKS_MORE;
	case SOCKS_TYPE_NAME:
		expect(s, NAME_LENGTH, 1);
		return SOCKS_MORE;
	default:
		return reject(s, s->command == CONNECT ||
				 s->command == UDP_ASSOCIATE ?
			      SOCKS_NO_ADDRESS_TYPE : SOCKS_NO_COMMAND);
	}
}

static enum socks_verdict take_name_length(struct socks *s)
{
	expect(s, ADDRESS, s->in[0] + 2u);
	return SOCKS_MORE;
}

static struct destination destination(const struct socks *s, size_t len,
				      uint16_t port)
{
	switch (s->address_type) {
	case SOCKS_TYPE_IPV4:
		return destination_ipv4(s->in, port);
	case SOCKS_TYPE_IPV6:
		return target_ipv6(s->in, port);
	default:
		return destination_name((const char *)s->in, len, port);
	}
}

/* A name that is none has no address: empty, or cut short by a NUL. */
static enum socks_verdict take_address(struct socks *s)
{
	size_t len = s->need - 2u;
	uint16_t port = (uint16_t)(s->in[len] << 8 | s->in[len + 1]);

	if (s->command != CONNECT && s->command != UDP_ASSOCIATE)
		return reject(s, SOCKS_NO_COMMAND);
	s->to = destination(s, len, port);
	if (s->command == UDP_ASSOCIATE) {
		s->to.port = port;
		expect(s, DONE, 0);
		return SOCKS_ASSOCIATE;
	}
	if (s->to.kind == DESTINATION_NONE)
		return reject(s, SOCKS_HOST_UNREACHABLE);
	expect(s, DONE, 0);
	return SOCKS_REQUEST;
}

static enum socks_verdict take_piece(struct socks *s)
{
	switch ((enum state)s->state) {
	case GREETING:
		return take_greeting(s);
	case METHODS:
		return take_methods(s);
	case REQUEST:
		return take_request(s);
	case NAME_LENGTH:
		return take_name_length(s);
	case ADDRESS:
		return take_address(s);
	case DONE:
		break;
	}
	return SOCKS_GARBAGE;
}

enum socks_verdict socks_take(struct socks *s, const uint8_t *data, size_t len)
{
	if (len > socks_need(s))
		return garbage(s);
	memcpy(s->in + s->have, data, len);
	s->have = (uint16_t)(s->have + len);
	return s->have < s->need ? SOCKS_MORE : take_piece(s);
}
