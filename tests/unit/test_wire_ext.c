/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/wire/wire_ext.h"
#include "random.h"

/* The body's size of each type with the type byte; of OPEN without address. */
static const struct {
	enum wire_ext_type type;
	size_t body;
} layout[] = {
	{ WIRE_HELLO, 1 + 1 + 4 + 16 + 1 + 1 + 2 + 8 + 4 + 4 },
	{ WIRE_WELCOME, 1 + 1 + 4 + 1 + 8 + 4 + 4 + 4 + 4 },
	{ WIRE_SYNACK, 1 + 2 + 1 },
	{ WIRE_WINDOW, 1 + 2 + 8 },
	{ WIRE_PING, 1 + 8 + 8 },
	{ WIRE_PONG, 1 + 8 + 8 + 8 },
	{ WIRE_GOODBYE, 1 + 1 },
	{ WIRE_HINT, 1 + 2 + 1 + 8 },
	{ WIRE_ACK, 1 + 1 + 2 + 8 + 8 + 4 },
	{ WIRE_RELEASE, 1 + 2 },
	{ WIRE_OPEN, 1 + 2 + 1 + 1 + 2 },
};

enum { TYPES = sizeof(layout) / sizeof(layout[0]) };

/* Decodes exactly these body bytes, in a block of their size. */
static enum wire_ext_result decode(const uint8_t *body, size_t len,
				   struct wire_ext *ext)
{
	uint8_t *block = malloc(len);
	struct wire_msg msg = {
		.type = WIRE_DATA,
		.body = block,
		.body_len = (uint16_t)len,
	};
	enum wire_ext_result result;

	memcpy(block, body, len);
	memset(ext, 0xA5, sizeof(*ext));
	result = wire_ext_get(&msg, ext);
	free(block);
	return result;
}

static void random_open(struct random *r, struct wire_open *m)
{
	static const uint8_t kinds[] = { WIRE_OPEN_IPV4, WIRE_OPEN_IPV6,
					 WIRE_OPEN_NAME };

	m->id = (uint16_t)random_range(r, 1, 65535);
	m->port = (uint16_t)random_next(r);
	m->kind = kinds[random_below(r, 3)];
	m->address_len = m->kind == WIRE_OPEN_IPV4 ? 4
		       : m->kind == WIRE_OPEN_IPV6 ? 16
		       : (uint8_t)random_range(r, 1, 255);
	for (int i = 0; i < m->address_len; i++)
		m->address[i] = (uint8_t)random_range(r, 1, 255);
}

/* Field by field, so that no padding has a value to be compared. */
static void random_message(struct random *r, enum wire_ext_type type,
			   struct wire_ext *ext)
{
	uint16_t id = (uint16_t)random_range(r, 1, 65535);

	memset(ext, 0, sizeof(*ext));
	ext->type = type;
	switch (type) {
	case WIRE_HELLO:
		ext->hello.version = (uint8_t)random_next(r);
		ext->hello.features = (uint32_t)random_next(r);
		random_fill(r, ext->hello.session, WIRE_EXT_SESSION_SIZE);
		ext->hello.pipe = (uint8_t)random_next(r);
		ext->hello.pipes = (uint8_t)random_next(r);
		ext->hello.incarnation = (uint16_t)random_next(r);
		ext->hello.received = random_next(r);
		ext->hello.conn_window = (uint32_t)random_next(r);
		ext->hello.session_window = (uint32_t)random_next(r);
		break;
	case WIRE_WELCOME:
		ext->welcome.version = (uint8_t)random_next(r);
		ext->welcome.features = (uint32_t)random_next(r);
		ext->welcome.status = (uint8_t)random_next(r);
		ext->welcome.received = random_next(r);
		ext->welcome.conn_window = (uint32_t)random_next(r);
		ext->welcome.session_window = (uint32_t)random_next(r);
		ext->welcome.conn_early = (uint32_t)random_next(r);
		ext->welcome.session_early = (uint32_t)random_next(r);
		break;
	case WIRE_SYNACK:
		ext->synack.id = id;
		ext->synack.result = (uint8_t)random_next(r);
		break;
	case WIRE_WINDOW:
		ext->window.id = (uint16_t)random_next(r);
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
		break;
	case WIRE_ACK:
		ext->ack.pipe = (uint8_t)random_next(r);
		ext->ack.incarnation = (uint16_t)random_next(r);
		ext->ack.received = random_next(r);
		ext->ack.received_us = random_next(r);
		ext->ack.reorder_bytes = (uint32_t)random_next(r);
		break;
	case WIRE_RELEASE:
		ext->release.id = id;
		break;
	case WIRE_OPEN:
		random_open(r, &ext->open);
		break;
	}
}

static void what_was_put_is_got(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 5000; round++) {
		enum wire_ext_type type = layout[round % TYPES].type;
		uint8_t buf[WIRE_EXT_SIZE_MAX];
		struct wire_ext in, out;
		struct wire_msg msg;
		size_t size;

		random_message(&r, type, &in);
		size = wire_ext_put(buf, &in);
		assert_in_range(size, WIRE_HEADER + 2, WIRE_EXT_SIZE_MAX);
		assert_int_equal(wire_read(buf, size, &msg), size);
		assert_int_equal(msg.type, WIRE_DATA);
		assert_int_equal(msg.id, 0);
		assert_int_equal(msg.number, 0);
		assert_int_equal(decode(msg.body, msg.body_len, &out),
				 WIRE_EXT_OK);
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

static void sizes_are_those_of_the_layout(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int i = 0; i < TYPES; i++) {
		uint8_t buf[WIRE_EXT_SIZE_MAX];
		size_t address = 0;
		struct wire_ext ext;

		random_message(&r, layout[i].type, &ext);
		if (ext.type == WIRE_OPEN)
			address = ext.open.address_len;
		assert_int_equal(wire_ext_put(buf, &ext),
				 WIRE_HEADER + layout[i].body + address);
		assert_int_equal(buf[WIRE_HEADER], layout[i].type);
	}
}

static void every_shorter_body_is_refused(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int i = 0; i < TYPES; i++) {
		uint8_t buf[WIRE_EXT_SIZE_MAX];
		struct wire_ext in, out;
		size_t body;

		random_message(&r, layout[i].type, &in);
		body = wire_ext_put(buf, &in) - WIRE_HEADER;
		for (size_t len = 1; len < body; len++) {
			assert_int_equal(decode(buf + WIRE_HEADER, len, &out),
					 WIRE_EXT_SHORT);
			assert_int_equal(out.type, layout[i].type);
		}
	}
}

static void fields_of_the_future_are_stepped_over(void **state)
{
	static uint8_t body[WIRE_PAYLOAD_MAX];
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 300; round++) {
		uint8_t buf[WIRE_EXT_SIZE_MAX];
		struct wire_ext in, out;
		size_t len;

		random_message(&r, layout[round % TYPES].type, &in);
		len = wire_ext_put(buf, &in) - WIRE_HEADER;
		random_fill(&r, body, sizeof(body));
		memcpy(body, buf + WIRE_HEADER, len);
		len = random_range(&r, (uint32_t)len, sizeof(body));
		assert_int_equal(decode(body, len, &out), WIRE_EXT_OK);
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

static void unknown_types_are_stepped_over(void **state)
{
	uint8_t body[40] = { 0 };
	struct wire_ext ext;

	(void)state;
	for (int type = 0; type < 256; type++) {
		if (type >= WIRE_HELLO && type <= WIRE_OPEN)
			continue;
		body[0] = (uint8_t)type;
		for (size_t len = 1; len <= sizeof(body); len++)
			assert_int_equal(decode(body, len, &ext),
					 WIRE_EXT_UNKNOWN);
		assert_int_equal(ext.type, type);
		assert_string_equal(wire_ext_name((unsigned int)type),
				    "unknown");
	}
}

static void a_connection_is_never_0(void **state)
{
	static const enum wire_ext_type about_one[] = {
		WIRE_SYNACK, WIRE_HINT, WIRE_RELEASE, WIRE_OPEN,
	};
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int i = 0; i < 4; i++) {
		uint8_t buf[WIRE_EXT_SIZE_MAX];
		struct wire_ext in, out;
		size_t body;

		random_message(&r, about_one[i], &in);
		body = wire_ext_put(buf, &in) - WIRE_HEADER;
		buf[WIRE_HEADER + 1] = 0;
		buf[WIRE_HEADER + 2] = 0;
		assert_int_equal(decode(buf + WIRE_HEADER, body, &out),
				 WIRE_EXT_BAD_ID);
		assert_int_equal(wire_ext_put(buf, &out), 0);
	}
}

static void window_0_is_the_session(void **state)
{
	static const uint8_t body[] = { WIRE_WINDOW, 0, 0, 0xFF, 0, 0, 0, 0,
					0, 0, 0x80 };
	struct wire_ext ext;

	(void)state;
	assert_int_equal(decode(body, sizeof(body), &ext), WIRE_EXT_OK);
	assert_int_equal(ext.window.id, 0);
	assert_true(ext.window.offset == 0x80000000000000FFu);
}

/* An OPEN of connection 9 with @len address bytes 'x' and port 80. */
static enum wire_ext_result open_with(uint8_t kind, uint8_t len,
				      struct wire_ext *ext)
{
	uint8_t body[5 + 255 + 2] = { WIRE_OPEN, 9, 0, kind, len };

	memset(body + 5, 'x', len);
	body[5 + len] = 80;
	return decode(body, 5u + len + 2u, ext);
}

static void kind_and_length_of_an_address_go_together(void **state)
{
	(void)state;
	for (int kind = 0; kind < 256; kind++) {
		for (int len = 0; len < 256; len++) {
			int sound = (kind == 4 && len == 4) ||
				    (kind == 6 && len == 16) ||
				    (kind == 'n' && len > 0);
			struct wire_ext ext;

			assert_int_equal(open_with((uint8_t)kind, (uint8_t)len,
						   &ext),
					 sound ? WIRE_EXT_OK
					       : WIRE_EXT_BAD_ADDRESS);
			assert_int_equal(ext.open.id, 9);
			assert_int_equal(ext.open.port, 80);
		}
	}
}

static void a_name_comes_as_a_string(void **state)
{
	struct wire_ext ext;

	(void)state;
	assert_int_equal(open_with('n', 255, &ext), WIRE_EXT_OK);
	assert_int_equal(strlen((const char *)ext.open.address), 255);
	assert_int_equal(open_with('n', 1, &ext), WIRE_EXT_OK);
	assert_string_equal((const char *)ext.open.address, "x");
}

static void a_name_with_a_nul_is_refused(void **state)
{
	static const uint8_t body[] = { WIRE_OPEN, 9, 0, 'n', 3, 'a', 0, 'b',
					80, 0 };
	uint8_t buf[WIRE_EXT_SIZE_MAX];
	struct wire_ext ext;

	(void)state;
	assert_int_equal(decode(body, sizeof(body), &ext),
			 WIRE_EXT_BAD_ADDRESS);
	assert_int_equal(ext.open.id, 9);
	assert_int_equal(wire_ext_put(buf, &ext), 0);
}

static void what_has_no_encoding_is_not_put(void **state)
{
	uint8_t buf[WIRE_EXT_SIZE_MAX];
	struct wire_ext ext;

	(void)state;
	memset(&ext, 0, sizeof(ext));
	assert_int_equal(wire_ext_put(buf, &ext), 0);
	ext.type = WIRE_OPEN + 1;
	assert_int_equal(wire_ext_put(buf, &ext), 0);
}

static void all_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < TYPES; i++)
		assert_string_not_equal(wire_ext_name(layout[i].type),
					"unknown");
	for (int i = WIRE_EXT_OK; i <= WIRE_EXT_BAD_ADDRESS; i++)
		assert_string_not_equal(wire_ext_result_text(i),
					"unknown error");
}

/* Whatever comes: what is taken is put again as it came. */
static void noise_is_refused_or_means_itself(void **state)
{
	struct random r;
	int taken = 0;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 50000; round++) {
		uint8_t body[64], buf[WIRE_EXT_SIZE_MAX];
		size_t len = random_range(&r, 1, sizeof(body));
		struct wire_ext ext;
		size_t size;

		random_fill(&r, body, len);
		body[0] = (uint8_t)random_below(&r, 13);
		if (body[0] == WIRE_OPEN && len > 4) {
			body[3] = WIRE_OPEN_NAME;
			body[4] = (uint8_t)random_below(&r, 30);
		}
		if (decode(body, len, &ext) != WIRE_EXT_OK)
			continue;
		taken++;
		size = wire_ext_put(buf, &ext);
		assert_in_range(size, WIRE_HEADER + 2, WIRE_HEADER + len);
		assert_memory_equal(buf + WIRE_HEADER, body,
				    size - WIRE_HEADER);
	}
	assert_true(taken > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_is_got),
		cmocka_unit_test(sizes_are_those_of_the_layout),
		cmocka_unit_test(every_shorter_body_is_refused),
		cmocka_unit_test(fields_of_the_future_are_stepped_over),
		cmocka_unit_test(unknown_types_are_stepped_over),
		cmocka_unit_test(a_connection_is_never_0),
		cmocka_unit_test(window_0_is_the_session),
		cmocka_unit_test(kind_and_length_of_an_address_go_together),
		cmocka_unit_test(a_name_comes_as_a_string),
		cmocka_unit_test(a_name_with_a_nul_is_refused),
		cmocka_unit_test(what_has_no_encoding_is_not_put),
		cmocka_unit_test(all_have_names),
		cmocka_unit_test(noise_is_refused_or_means_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
