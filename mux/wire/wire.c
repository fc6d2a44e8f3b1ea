/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <string.h>

/* Values of the length field that are types rather than lengths. */
enum {
	LENGTH_SYN = 0xFFFF,
	LENGTH_FIN = 0xFFFE,
};

static uint16_t get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get_u32(const uint8_t *p)
{
	return get_u16(p) | (uint32_t)get_u16(p + 2) << 16;
}

static void put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void put_u32(uint8_t *p, uint32_t v)
{
	put_u16(p, (uint16_t)v);
	put_u16(p + 2, (uint16_t)(v >> 16));
}

static size_t put_header(uint8_t *buf, uint16_t id, uint32_t number,
			 uint16_t length)
{
	put_u16(buf, id);
	put_u32(buf + 2, number);
	put_u16(buf + 6, length);
	return WIRE_HEADER;
}

/*
 * What a length field says: the type, and the size on the wire or -1. What is the session's own
 * is small in any case.
 */
static int classify(uint16_t id, uint16_t length, size_t largest,
		    enum wire_type *type)
{
	switch (length) {
	case LENGTH_SYN:
		*type = WIRE_SYN;
		return WIRE_SYN_SIZE;
	case LENGTH_FIN:
		*type = WIRE_FIN;
		return WIRE_FIN_SIZE;
	}
	*type = WIRE_DATA;
	if (length <= WIRE_HEADER || length > (id ? largest : WIRE_MESSAGE_MAX))
		return -1;
	return length;
}

int wire_read_up_to(const uint8_t *buf, size_t len, size_t largest,
		    struct wire_msg *msg)
{
	uint16_t length;
	int size;

	if (len < WIRE_HEADER)
		return 0;
	msg->id = get_u16(buf);
	msg->number = get_u32(buf + 2);
	length = get_u16(buf + 6);
	size = classify(msg->id, length, largest, &msg->type);
	if (size < 0) {
		msg->body_len = length;
		msg->body = NULL;
		return -1;
	}
	if (len < (size_t)size)
		return 0;
	msg->body_len = (uint16_t)(size - WIRE_HEADER);
	msg->body = buf + WIRE_HEADER;
	return size;
}

int wire_read(const uint8_t *buf, size_t len, struct wire_msg *msg)
{
	return wire_read_up_to(buf, len, WIRE_MESSAGE_MAX, msg);
}

bool wire_head_up_to(const uint8_t *buf, size_t len, size_t largest,
		     struct wire_head *head)
{
	enum wire_type type;
	int size;

	if (len < WIRE_HEADER)
		return false;
	size = classify(get_u16(buf), get_u16(buf + 6), largest, &type);
	if (size < 0)
		return false;
	head->id = get_u16(buf);
	head->number = get_u32(buf + 2);
	head->size = (size_t)size;
	return true;
}

bool wire_head(const uint8_t *buf, size_t len, struct wire_head *head)
{
	return wire_head_up_to(buf, len, WIRE_MESSAGE_MAX, head);
}

static int reason_is_known(uint8_t reason)
{
	return reason == WIRE_REASON_FIN || reason == WIRE_REASON_RST;
}

enum wire_error wire_check(const struct wire_msg *msg, int downlink)
{
	if (msg->id == 0)
		return WIRE_BAD_ID;
	switch (msg->type) {
	case WIRE_DATA:
		return WIRE_OK;
	case WIRE_SYN:
		if (downlink)
			return WIRE_SYN_DOWNLINK;
		return msg->number == 0 ? WIRE_OK : WIRE_BAD_SYN_NUMBER;
	case WIRE_FIN:
		return reason_is_known(msg->body[0]) ? WIRE_OK
						     : WIRE_BAD_REASON;
	}
	return WIRE_BAD_LENGTH;
}

const char *wire_error_text(enum wire_error err)
{
	switch (err) {
	case WIRE_OK:
		return "nothing is wrong";
	case WIRE_BAD_LENGTH:
		return "length is neither 9 to 4104 nor that of a SYN or FIN";
	case WIRE_BAD_ID:
		return "connection id is 0";
	case WIRE_BAD_SYN_NUMBER:
		return "a SYN whose number is not 0";
	case WIRE_BAD_REASON:
		return "a FIN whose reason is neither 0x88 nor 0x99";
	case WIRE_SYN_DOWNLINK:
		return "a SYN came downlink";
	case WIRE_BAD_FIRST:
		return "number 0 uplink is a SYN's alone";
	}
	return "unknown error";
}

const char *wire_error_field(enum wire_error err)
{
	switch (err) {
	case WIRE_OK:
		return "none";
	case WIRE_BAD_LENGTH:
	case WIRE_SYN_DOWNLINK:
		return "length";
	case WIRE_BAD_ID:
		return "connection id";
	case WIRE_BAD_SYN_NUMBER:
	case WIRE_BAD_FIRST:
		return "number";
	case WIRE_BAD_REASON:
		return "reason";
	}
	return "unknown field";
}

size_t wire_put_data(uint8_t *buf, uint16_t id, uint32_t number, size_t payload)
{
	return put_header(buf, id, number, (uint16_t)(WIRE_HEADER + payload));
}

size_t wire_put_syn(uint8_t *buf, uint16_t id, const uint8_t addr[4],
		    uint16_t port)
{
	size_t at = put_header(buf, id, 0, LENGTH_SYN);

	memcpy(buf + at, addr, 4);
	put_u16(buf + at + 4, port);
	return WIRE_SYN_SIZE;
}

size_t wire_put_fin(uint8_t *buf, uint16_t id, uint32_t number,
		    enum wire_reason reason)
{
	size_t at = put_header(buf, id, number, LENGTH_FIN);

	buf[at] = (uint8_t)reason;
	return WIRE_FIN_SIZE;
}

void wire_get_syn(const uint8_t *body, uint8_t addr[4], uint16_t *port)
{
	memcpy(addr, body, 4);
	*port = get_u16(body + 4);
}

int32_t wire_distance(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}
