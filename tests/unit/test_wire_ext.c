/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ext_message.h"

/* Bytes of a message beyond those that its type always has. */
static size_t more_of(const struct wire_ext *ext)
{
	switch (ext->type) {
	case WIRE_OPEN:
		return ext->open.to.len;
	case WIRE_ACK:
		return 13u * ext->ack.pipes;
	case WIRE_LISTEN:
		return ext->listen.at.len;
	case WIRE_DATAGRAM:
		return ext->datagram.at.len + (size_t)ext->datagram.payload_len;
	default:
		return 0;
	}
}

static void assert_same(const struct wire_ext *a, const struct wire_ext *b)
{
	struct wire_ext x = *a, y = *b;

	if (x.type == WIRE_DATAGRAM && y.type == WIRE_DATAGRAM) {
		assert_int_equal(x.datagram.payload_len,
				 y.datagram.payload_len);
		assert_memory_equal(x.datagram.payload, y.datagram.payload,
				    x.datagram.payload_len);
		x.datagram.payload = y.datagram.payload = NULL;
	}
	assert_memory_equal(&x, &y, sizeof(x));
}

static void what_was_put_is_got(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 5000; round++) {
		enum wire_ext_type type = ext_layout[round % EXT_TYPES].type;
		uint8_t buf[WIRE_MESSAGE_MAX];
		struct wire_ext in, out;
		struct wire_msg msg;
		size_t size;

		ext_random(&r, type, &in);
		size = wire_ext_put(buf, &in);
		assert_int_equal(size, ext_layout[round % EXT_TYPES].size +
				 more_of(&in));
		assert_int_equal(buf[WIRE_HEADER], type);
		assert_int_equal(wire_read(buf, size, &msg), size);
		assert_int_equal(msg.type, WIRE_DATA);
		assert_int_equal(msg.id, 0);
		assert_int_equal(msg.number, in.number);
		assert_int_equal(ext_decode(msg.body, msg.body_len, msg.number,
					&out), WIRE_EXT_OK);
		assert_same(&in, &out);
	}
}

static void a_number_that_means_nothing_is_ignored(void **state)
{
	static const uint8_t body[] = { WIRE_WINDOW, 9, 0, 1, 0, 0, 0, 0, 0, 0,
					0x80 };
	struct wire_ext ext;

	(void)state;
	assert_int_equal(ext_decode(body, sizeof(body), 77, &ext), WIRE_EXT_OK);
	assert_int_equal(ext.number, 0);
	assert_int_equal(ext.window.id, 9);
	assert_true(ext.window.offset == 0x8000000000000001u);
}

static void fields_of_the_future_are_stepped_over(void **state)
{
	static uint8_t body[WIRE_PAYLOAD_MAX];
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 300; round++) {
		uint8_t buf[WIRE_MESSAGE_MAX];
		struct wire_ext in, out;
		size_t len;

		ext_random(&r, ext_layout[round % EXT_TYPES].type, &in);
		if (in.type == WIRE_DATAGRAM)
			continue;	/* all behind its head is payload */
		len = wire_ext_put(buf, &in) - WIRE_HEADER;
		random_fill(&r, body, sizeof(body));
		memcpy(body, buf + WIRE_HEADER, len);
		len = random_range(&r, (uint32_t)len, sizeof(body));
		assert_int_equal(ext_decode(body, len, in.number, &out),
				 WIRE_EXT_OK);
		assert_same(&in, &out);
	}
}

static void a_name_comes_as_a_string(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 300; round++) {
		uint8_t buf[WIRE_MESSAGE_MAX];
		struct wire_ext in, out;
		size_t size;

		ext_random(&r, WIRE_OPEN, &in);
		size = wire_ext_put(buf, &in);
		ext_decode(buf + WIRE_HEADER, size - WIRE_HEADER, 0, &out);
		if (out.open.to.kind == DESTINATION_NAME)
			assert_int_equal(strlen((char *)out.open.to.bytes),
					 out.open.to.len);
	}
}

static void a_datagram_fits_into_a_message(void **state)
{
	static const uint8_t payload[WIRE_PAYLOAD_MAX] = { 1 };
	uint8_t buf[WIRE_MESSAGE_MAX];
	struct wire_ext ext = {
		.type = WIRE_DATAGRAM,
		.datagram = { .id = 9, .payload = payload },
	};

	(void)state;
	assert_int_equal(wire_ext_put(buf, &ext), 15);
	ext.datagram.payload_len = WIRE_MESSAGE_MAX - 15;
	assert_int_equal(wire_ext_put(buf, &ext), WIRE_MESSAGE_MAX);
	ext.datagram.payload_len++;
	assert_int_equal(wire_ext_put(buf, &ext), 0);
	ext.datagram.payload_len = UINT16_MAX;
	assert_int_equal(wire_ext_put(buf, &ext), 0);
}

static void what_has_no_encoding_is_not_put(void **state)
{
	uint8_t buf[WIRE_MESSAGE_MAX];
	struct wire_ext ext;

	(void)state;
	memset(&ext, 0, sizeof(ext));
	assert_int_equal(wire_ext_put(buf, &ext), 0);
	for (unsigned int type = WIRE_TOO_BIG + 1; type < 256; type++) {
		ext.type = type;
		assert_int_equal(wire_ext_put(buf, &ext), 0);
	}
}

static void what_counts_on_a_pipe(void **state)
{
	(void)state;
	for (int type = 0; type < 256; type++) {
		uint8_t body = (uint8_t)type;
		struct wire_msg msg = { .type = WIRE_DATA, .body = &body,
					.body_len = 1 };
		int kept = !(type == 1 || type == 2 || type == 5 || type == 6 ||
			     type == 9 || type == 12 || type == 16);

		assert_int_equal(wire_ext_counts(&msg), kept);
		msg.id = 1;
		assert_int_equal(wire_ext_counts(&msg), 1);
		msg.type = WIRE_FIN;
		assert_int_equal(wire_ext_counts(&msg), 1);
		msg.id = 0;
		assert_int_equal(wire_ext_counts(&msg), 1);
	}
}

static void all_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < EXT_TYPES; i++)
		assert_string_not_equal(wire_ext_name(ext_layout[i].type),
					"unknown");
	for (int i = WIRE_EXT_OK; i <= WIRE_EXT_BAD_ADDRESS; i++)
		assert_string_not_equal(wire_ext_result_text(i),
					"unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_is_got),
		cmocka_unit_test(a_number_that_means_nothing_is_ignored),
		cmocka_unit_test(fields_of_the_future_are_stepped_over),
		cmocka_unit_test(a_name_comes_as_a_string),
		cmocka_unit_test(a_datagram_fits_into_a_message),
		cmocka_unit_test(what_has_no_encoding_is_not_put),
		cmocka_unit_test(what_counts_on_a_pipe),
		cmocka_unit_test(all_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
