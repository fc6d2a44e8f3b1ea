/* SPDX-License-Identifier: MIT */
/*
 * The wire reader fed with arbitrary bytes. Asserted: each message lies within
 * what was given and says what its bytes say; every shorter piece of it waits
 * for more; what was read is put again as it came; a break of the framing is
 * one; and no byte is skipped or read twice. The bytes are read twice: with the limit of
 * the baseline, and with that of sessions whose connections may have large messages.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mux/wire/wire.h"
#include "mux/wire/wire_ext.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int length_field(const uint8_t *at)
{
	return at[6] | (unsigned int)at[7] << 8;
}

/* Bytes of a message by its length field, 0 for one that means none. */
static size_t size_meant(const uint8_t *at, size_t largest)
{
	unsigned int length = length_field(at);
	bool of_session = !at[0] && !at[1];

	if (length == 0xFFFF)
		return 14;
	if (length == 0xFFFE)
		return 9;
	return length >= 9 && length <= (of_session ? 4104 : largest) ? length : 0;
}

static void check_shorter_waits(const uint8_t *at, size_t size, size_t largest)
{
	struct wire_msg msg;
	size_t step = size > 64 ? size / 64 : 1;

	for (size_t len = 0; len < size; len += step)
		check(wire_read_up_to(at, len, largest, &msg) == 0);
	check(wire_read_up_to(at, size - 1, largest, &msg) == 0);
	check(wire_read_up_to(at, size, largest, &msg) == (int)size);
}

/* A header says as much as the whole message does, and a part of one says nothing. */
static void check_head(const uint8_t *at, size_t left, size_t meant, size_t largest)
{
	struct wire_head head;

	if (left < WIRE_HEADER) {
		check(!wire_head_up_to(at, left, largest, &head));
		return;
	}
	check(wire_head_up_to(at, WIRE_HEADER, largest, &head) == (meant > 0));
	check(!wire_head_up_to(at, WIRE_HEADER - 1, largest, &head));
	if (!meant)
		return;
	check(head.size == meant && head.id == (at[0] | at[1] << 8));
	check(head.number == (at[2] | at[3] << 8 | at[4] << 16 | (uint32_t)at[5] << 24));
}

/* Who knows no large messages reads all others alike, and finds those impossible. */
static void check_without_large(const uint8_t *at, size_t size)
{
	struct wire_msg msg;
	struct wire_head head;
	bool large = size > 4104 && length_field(at) == size;

	check(wire_read(at, size, &msg) == (large ? -1 : (int)size));
	check(wire_head(at, size, &head) == !large);
}

static void check_put_again(const uint8_t *at, const struct wire_msg *msg)
{
	uint8_t buf[WIRE_SYN_SIZE];
	uint8_t addr[4];
	uint16_t port;
	size_t n = WIRE_HEADER;

	switch (msg->type) {
	case WIRE_DATA:
		check(wire_put_data(buf, msg->id, msg->number,
				    msg->body_len) == n);
		break;
	case WIRE_SYN:
		if (msg->number)
			return;
		wire_get_syn(msg->body, addr, &port);
		n = wire_put_syn(buf, msg->id, addr, port);
		check(n == WIRE_SYN_SIZE);
		break;
	case WIRE_FIN:
		n = wire_put_fin(buf, msg->id, msg->number, msg->body[0]);
		check(n == WIRE_FIN_SIZE);
		break;
	}
	check(memcmp(buf, at, n) == 0);
}

static void check_baseline(const struct wire_msg *msg)
{
	enum wire_error up = wire_check(msg, 0);
	enum wire_error down = wire_check(msg, 1);

	check((msg->id == 0) == (up == WIRE_BAD_ID));
	check((msg->id == 0) == (down == WIRE_BAD_ID));
	check(up != WIRE_SYN_DOWNLINK && up != WIRE_BAD_LENGTH);
	if (msg->id && msg->type == WIRE_SYN)
		check(down == WIRE_SYN_DOWNLINK);
	else
		check(up == down);
	check(wire_error_text(up) && wire_error_field(down));
}

/* What ends with a message depends on its bytes and its way alone. */
static void check_scope(const struct wire_msg *msg, enum wire_ext_result result)
{
	enum wire_ext_scope scope = wire_ext_scope(result);

	check((result == WIRE_EXT_OK) == (scope == WIRE_SCOPE_NONE));
	check(wire_ext_result_text(result) != NULL);
	if (msg->type == WIRE_SYN)
		check(result == WIRE_EXT_SYN && wire_ext_counts(msg));
	if (msg->id) {
		check(wire_ext_counts(msg));
		check(msg->type != WIRE_DATA || result == WIRE_EXT_OK);
	}
}

static void check_own_message(const struct wire_msg *msg,
			      const struct wire_ext *ext,
			      enum wire_ext_result result)
{
	static uint8_t buf[WIRE_MESSAGE_MAX];
	size_t size;

	check(ext->type == (enum wire_ext_type)msg->body[0]);
	if (result == WIRE_EXT_SHORT)
		return;
	size = wire_ext_put(buf, ext);
	if (result != WIRE_EXT_OK) {
		check(result == WIRE_EXT_WRONG_WAY || size == 0);
		return;
	}
	check(size > WIRE_HEADER + 1 && size - WIRE_HEADER <= msg->body_len);
	check(memcmp(buf + WIRE_HEADER, msg->body, size - WIRE_HEADER) == 0);
	check(ext->number == 0 || ext->number == msg->number);
	if (ext->type == WIRE_DATAGRAM)
		check(ext->datagram.payload + ext->datagram.payload_len ==
		      msg->body + msg->body_len);
}

/* The way decides only whether a message may come that way. */
static void check_extension(const struct wire_msg *msg)
{
	enum wire_ext_result result[2];

	for (int down = 0; down < 2; down++) {
		static struct wire_ext ext;

		result[down] = wire_ext_get(msg, down, &ext);
		check_scope(msg, result[down]);
		if (msg->type == WIRE_DATA && msg->id == 0)
			check_own_message(msg, &ext, result[down]);
		else
			check(ext.type == WIRE_EXT_NONE);
	}
	if (result[0] != result[1])
		check(result[0] == WIRE_EXT_WRONG_WAY ||
		      result[1] == WIRE_EXT_WRONG_WAY);
	else
		check(result[0] != WIRE_EXT_WRONG_WAY);
}

static void read_all(const uint8_t *data, size_t size, size_t largest)
{
	size_t at = 0;

	for (;;) {
		struct wire_msg msg;
		int n = wire_read_up_to(data + at, size - at, largest, &msg);
		size_t meant = 0;

		if (size - at >= WIRE_HEADER) {
			meant = size_meant(data + at, largest);
			check((n < 0) == (meant == 0));
		}
		check_head(data + at, size - at, meant, largest);
		if (n < 0)
			check(msg.body_len == length_field(data + at));
		if (n == 0)
			check(size - at < WIRE_HEADER || size - at < meant);
		if (n <= 0)
			return;
		check((size_t)n == meant && meant <= size - at);
		check(msg.body == data + at + WIRE_HEADER);
		check(msg.body_len == meant - WIRE_HEADER);
		check_shorter_waits(data + at, meant, largest);
		check_without_large(data + at, meant);
		check_put_again(data + at, &msg);
		check_baseline(&msg);
		check_extension(&msg);
		at += meant;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_all(data, size, WIRE_MESSAGE_MAX);
	read_all(data, size, WIRE_LARGE_MAX);
	return 0;
}
