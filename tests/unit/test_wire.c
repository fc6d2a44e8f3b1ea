/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/wire/wire.h"
#include "random.h"

/* What wire_read() says about exactly these bytes, in a block of their size
 * so that a look beyond it is seen. */
static int read_exactly(const uint8_t *bytes, size_t len, struct wire_msg *msg)
{
	uint8_t *block = malloc(len ? len : 1);
	int got;

	memcpy(block, bytes, len);
	memset(msg, 0, sizeof(*msg));
	got = wire_read(block, len, msg);
	free(block);
	return got;
}

static void header_is_little_endian(void **state)
{
	static const uint8_t want[] = { 0x02, 0x01, 0x06, 0x05, 0x04, 0x03,
					0x0A, 0x00 };
	uint8_t buf[WIRE_HEADER];

	(void)state;
	assert_int_equal(wire_put_data(buf, 0x0102, 0x03040506, 2), 8);
	assert_memory_equal(buf, want, sizeof(want));
}

static void syn_has_its_port_little_endian_and_its_address_not(void **state)
{
	static const uint8_t want[] = { 0x07, 0x00, 0, 0, 0, 0, 0xFF, 0xFF,
					192, 0, 2, 33, 0xBB, 0x01 };
	static const uint8_t addr[4] = { 192, 0, 2, 33 };
	uint8_t buf[WIRE_SYN_SIZE];
	uint8_t back[4];
	struct wire_msg msg;
	uint16_t port;

	(void)state;
	assert_int_equal(wire_put_syn(buf, 7, addr, 443), sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(wire_read(buf, sizeof(buf), &msg), sizeof(buf));
	assert_int_equal(msg.type, WIRE_SYN);
	assert_int_equal(msg.body_len, 6);
	wire_get_syn(msg.body, back, &port);
	assert_memory_equal(back, addr, 4);
	assert_int_equal(port, 443);
}

static void fin_is_nine_bytes(void **state)
{
	static const uint8_t want[] = { 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF,
					0xFE, 0xFF, 0x99 };
	uint8_t buf[WIRE_FIN_SIZE];
	struct wire_msg msg;

	(void)state;
	assert_int_equal(wire_put_fin(buf, WIRE_ID_LP_MAX, UINT32_MAX,
				      WIRE_REASON_RST), sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(wire_read(buf, sizeof(buf), &msg), 9);
	assert_int_equal(msg.type, WIRE_FIN);
	assert_int_equal(msg.id, 32767);
	assert_int_equal(msg.number, UINT32_MAX);
	assert_int_equal(msg.body_len, 1);
	assert_int_equal(msg.body[0], WIRE_REASON_RST);
}

/* The size on the wire that a length field stands for; -1: none. */
static int size_meant(unsigned int length)
{
	if (length == 0xFFFF)
		return 14;
	if (length == 0xFFFE)
		return 9;
	return length >= 9 && length <= 4104 ? (int)length : -1;
}

static void every_length_is_judged_from_the_header_alone(void **state)
{
	static uint8_t bytes[WIRE_MESSAGE_MAX] = { 1, 0, 9, 0, 0, 0 };
	struct wire_head head;
	struct wire_msg msg;

	(void)state;
	for (unsigned int length = 0; length <= 0xFFFF; length++) {
		int size = size_meant(length);

		bytes[6] = (uint8_t)length;
		bytes[7] = (uint8_t)(length >> 8);
		assert_int_equal(read_exactly(bytes, 7, &msg), 0);
		assert_int_equal(read_exactly(bytes, 8, &msg),
				 size < 0 ? -1 : 0);
		assert_int_equal(msg.id, 1);
		assert_int_equal(msg.number, 9);
		assert_false(wire_head(bytes, 7, &head));
		assert_int_equal(wire_head(bytes, 8, &head), size > 0);
		if (size < 0) {
			assert_int_equal(msg.body_len, length);
			continue;
		}
		assert_int_equal(head.id, 1);
		assert_int_equal(head.number, 9);
		assert_int_equal(head.size, size);
		assert_int_equal(read_exactly(bytes, (size_t)size - 1, &msg),
				 0);
		assert_int_equal(read_exactly(bytes, (size_t)size, &msg), size);
		assert_int_equal(msg.body_len, size - 8);
	}
}

static enum wire_error check(enum wire_type type, uint16_t id, uint32_t number,
			     uint8_t reason, int downlink)
{
	struct wire_msg msg = {
		.type = type,
		.id = id,
		.number = number,
		.body_len = 1,
		.body = &reason,
	};

	return wire_check(&msg, downlink);
}

static void what_baseline_objects_to(void **state)
{
	(void)state;
	assert_int_equal(check(WIRE_DATA, 1, 0, 0, 0), WIRE_OK);
	assert_int_equal(check(WIRE_DATA, 65535, UINT32_MAX, 0, 1), WIRE_OK);
	assert_int_equal(check(WIRE_DATA, 0, 0, 0, 0), WIRE_BAD_ID);
	assert_int_equal(check(WIRE_SYN, 0, 0, 0, 1), WIRE_BAD_ID);
	assert_int_equal(check(WIRE_FIN, 0, 0, 0x88, 1), WIRE_BAD_ID);
	assert_int_equal(check(WIRE_SYN, 1, 0, 0, 0), WIRE_OK);
	assert_int_equal(check(WIRE_SYN, 1, 1, 0, 0), WIRE_BAD_SYN_NUMBER);
	assert_int_equal(check(WIRE_SYN, 1, 0, 0, 1), WIRE_SYN_DOWNLINK);
	for (int reason = 0; reason < 256; reason++) {
		int known = reason == 0x88 || reason == 0x99;

		assert_int_equal(check(WIRE_FIN, 1, 5, (uint8_t)reason, 0),
				 known ? WIRE_OK : WIRE_BAD_REASON);
	}
}

static void every_error_has_its_words(void **state)
{
	(void)state;
	for (int e = WIRE_OK; e <= WIRE_SYN_DOWNLINK; e++) {
		assert_null(strstr(wire_error_text(e), "unknown"));
		assert_null(strstr(wire_error_field(e), "unknown"));
	}
	assert_string_equal(wire_error_text(WIRE_BAD_ID), "connection id is 0");
	assert_string_equal(wire_error_field(WIRE_BAD_ID), "connection id");
}

static void distance_goes_round_the_circle(void **state)
{
	(void)state;
	assert_int_equal(wire_distance(5, 5), 0);
	assert_int_equal(wire_distance(0, UINT32_MAX), 1);
	assert_int_equal(wire_distance(UINT32_MAX, 0), -1);
	assert_int_equal(wire_distance(1u << 31, 1), INT32_MAX);
	assert_true(wire_distance(1u << 31, 0) < 0);
}

/* --- any cut of any sequence reads the same ------------------------------ */

enum { STREAM_MESSAGES = 40, STREAM_MAX = STREAM_MESSAGES * WIRE_MESSAGE_MAX };

struct stream {
	uint8_t bytes[STREAM_MAX];
	size_t len;
	size_t start[STREAM_MESSAGES + 1];	/* of each message */
	uint32_t messages;
};

static size_t put_data(struct random *r, uint8_t *at)
{
	/* Mostly short, so that cuts meet headers; the ends now and then. */
	static const uint16_t end[] = { 1, 2, 4095, 4096 };
	size_t payload = random_below(r, 4) ? random_range(r, 1, 60)
					    : end[random_below(r, 4)];

	wire_put_data(at, (uint16_t)random_next(r), (uint32_t)random_next(r),
		      payload);
	random_fill(r, at + WIRE_HEADER, payload);
	return WIRE_HEADER + payload;
}

static size_t put_any(struct random *r, uint8_t *at)
{
	uint16_t id = (uint16_t)random_next(r);
	uint8_t addr[4];

	switch (random_below(r, 4)) {
	case 0:
		random_fill(r, addr, sizeof(addr));
		return wire_put_syn(at, id, addr, (uint16_t)random_next(r));
	case 1:
		return wire_put_fin(at, id, (uint32_t)random_next(r),
				    WIRE_REASON_FIN);
	default:
		return put_data(r, at);
	}
}

static void fill(struct random *r, struct stream *s)
{
	s->len = 0;
	s->messages = random_range(r, 1, STREAM_MESSAGES);
	for (uint32_t i = 0; i < s->messages; i++) {
		s->start[i] = s->len;
		s->len += put_any(r, s->bytes + s->len);
	}
	s->start[s->messages] = s->len;
}

/* What the header at @at says, read the plain way. */
static void assert_is_message(const struct wire_msg *msg, const uint8_t *at,
			      size_t size)
{
	unsigned int length = at[6] | (unsigned int)at[7] << 8;
	enum wire_type type = length == 0xFFFF ? WIRE_SYN
			    : length == 0xFFFE ? WIRE_FIN : WIRE_DATA;

	assert_int_equal(msg->type, type);
	assert_int_equal(msg->id, at[0] | at[1] << 8);
	assert_int_equal(msg->number, at[2] | at[3] << 8 | at[4] << 16 |
				      (uint32_t)at[5] << 24);
	assert_int_equal(msg->body_len, size - WIRE_HEADER);
	assert_memory_equal(msg->body, at + WIRE_HEADER, msg->body_len);
}

/* Reads a stream that comes in pieces of at most @piece bytes. */
static void read_in_pieces(struct random *r, const struct stream *s,
			   uint32_t piece)
{
	static uint8_t buf[2 * WIRE_MESSAGE_MAX];
	size_t have = 0, sent = 0;
	uint32_t seen = 0;

	while (sent < s->len) {
		size_t n = random_range(r, 1, piece);
		size_t used = 0;
		struct wire_msg msg;
		int size;

		if (n > s->len - sent)
			n = s->len - sent;
		memcpy(buf + have, s->bytes + sent, n);
		have += n;
		sent += n;
		while ((size = wire_read(buf + used, have - used, &msg)) > 0) {
			size_t start = s->start[seen];

			assert_int_equal(size, s->start[++seen] - start);
			assert_is_message(&msg, s->bytes + start, (size_t)size);
			used += (size_t)size;
		}
		assert_int_equal(size, 0);
		have -= used;
		memmove(buf, buf + used, have);
	}
	assert_int_equal(seen, s->messages);
	assert_int_equal(have, 0);
}

static void any_cut_of_any_sequence_reads_the_same(void **state)
{
	static const uint32_t piece[] = { 1, 2, 9, 50, WIRE_MESSAGE_MAX };
	struct stream *s = malloc(sizeof(*s));
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 200; round++) {
		fill(&r, s);
		for (size_t i = 0; i < sizeof(piece) / sizeof(piece[0]); i++)
			read_in_pieces(&r, s, piece[i]);
	}
	free(s);
}

/* Both halves of one message, cut at every byte. */
static void each_single_cut_waits_for_the_rest(void **state)
{
	static uint8_t bytes[WIRE_MESSAGE_MAX];
	struct wire_msg msg;

	(void)state;
	wire_put_data(bytes, 1, 1, WIRE_PAYLOAD_MAX);
	for (size_t cut = 0; cut < WIRE_MESSAGE_MAX; cut++)
		assert_int_equal(read_exactly(bytes, cut, &msg), 0);
	assert_int_equal(read_exactly(bytes, sizeof(bytes), &msg),
			 WIRE_MESSAGE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_is_little_endian),
		cmocka_unit_test(
			syn_has_its_port_little_endian_and_its_address_not),
		cmocka_unit_test(fin_is_nine_bytes),
		cmocka_unit_test(every_length_is_judged_from_the_header_alone),
		cmocka_unit_test(what_baseline_objects_to),
		cmocka_unit_test(every_error_has_its_words),
		cmocka_unit_test(distance_goes_round_the_circle),
		cmocka_unit_test(any_cut_of_any_sequence_reads_the_same),
		cmocka_unit_test(each_single_cut_waits_for_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
