/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ext_message.h"

/* A DATAGRAM is as short as its payload; only its head can be missing. */
static size_t smallest_body(const struct wire_ext *ext, size_t body)
{
	if (ext->type == WIRE_DATAGRAM)
		return body - ext->datagram.payload_len;
	return body;
}

static void every_shorter_body_is_dropped(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int i = 0; i < EXT_TYPES; i++) {
		uint8_t buf[WIRE_MESSAGE_MAX];
		struct wire_ext in, out;
		size_t body;

		ext_random(&r, ext_layout[i].type, &in);
		body = wire_ext_put(buf, &in) - WIRE_HEADER;
		body = smallest_body(&in, body);
		for (size_t len = 1; len < body; len++) {
			assert_int_equal(ext_decode(buf + WIRE_HEADER, len, 5,
						&out), WIRE_EXT_SHORT);
			assert_int_equal(out.type, ext_layout[i].type);
			assert_int_equal(out.number, 0);
		}
		assert_int_equal(ext_decode(buf + WIRE_HEADER, body, 5, &out),
				 WIRE_EXT_OK);
	}
}

static void unknown_types_are_stepped_over(void **state)
{
	uint8_t body[40] = { 0 };
	struct wire_ext ext;

	(void)state;
	for (int type = 0; type < 256; type++) {
		int known = 0;

		for (int i = 0; i < EXT_TYPES; i++)
			known |= ext_layout[i].type == (enum wire_ext_type)type;
		if (known)
			continue;
		body[0] = (uint8_t)type;
		for (size_t len = 1; len <= sizeof(body); len++)
			for (int down = 0; down < 2; down++)
				assert_int_equal(
					ext_decode_way(body, len, 1, down, &ext),
					WIRE_EXT_UNKNOWN);
		assert_int_equal(ext.type, type);
		assert_string_equal(wire_ext_name((unsigned int)type),
				    "unknown");
	}
}

static void a_connection_is_never_0(void **state)
{
	static const enum wire_ext_type about_one[] = {
		WIRE_SYNACK, WIRE_WINDOW, WIRE_HINT, WIRE_OPEN, WIRE_DATAGRAM,
		WIRE_TOO_BIG,
	};
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int i = 0; i < 6; i++) {
		uint8_t buf[WIRE_MESSAGE_MAX];
		struct wire_ext in, out;
		size_t body;

		ext_random(&r, about_one[i], &in);
		body = wire_ext_put(buf, &in) - WIRE_HEADER;
		buf[WIRE_HEADER + 1] = 0;
		buf[WIRE_HEADER + 2] = 0;
		for (int down = 0; down < 2; down++)
			assert_int_equal(ext_decode_way(buf + WIRE_HEADER, body,
							0, down, &out),
					 WIRE_EXT_BAD_ID);
		assert_int_equal(wire_ext_put(buf, &out), 0);
	}
}

static uint16_t id_of(const struct wire_ext *ext)
{
	return ext->type == WIRE_SYNACK ? ext->synack.id
	     : ext->type == WIRE_OPEN ? ext->open.id : 0;
}

static void who_may_send_what(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 1000; round++) {
		uint8_t buf[WIRE_MESSAGE_MAX];
		enum wire_ext_result result[2];
		struct wire_ext in, out;
		size_t body;
		int way;

		ext_random(&r, ext_layout[round % EXT_TYPES].type, &in);
		body = wire_ext_put(buf, &in) - WIRE_HEADER;
		for (int down = 0; down < 2; down++)
			result[down] = ext_decode_way(buf + WIRE_HEADER, body,
						      0, down, &out);
		way = ext_is_downlink(in.type, id_of(&in));
		assert_int_equal(result[way], WIRE_EXT_OK);
		switch (in.type) {
		case WIRE_HELLO:
		case WIRE_WELCOME:
		case WIRE_SYNACK:
		case WIRE_OPEN:
		case WIRE_LISTEN:
		case WIRE_LISTENING:
		case WIRE_PATH:
		case WIRE_TOO_BIG:
			assert_int_equal(result[!way], WIRE_EXT_WRONG_WAY);
			break;
		default:
			assert_int_equal(result[!way], WIRE_EXT_OK);
		}
	}
}

static void lp_opens_up_to_32767_and_rp_from_there(void **state)
{
	uint8_t body[] = { WIRE_OPEN, 0xFF, 0x7F, 6, 'n', 1, 'x', 80, 0,
			   0, 0, 1, 0 };
	struct wire_ext ext;

	(void)state;
	assert_int_equal(ext_decode_way(body, sizeof(body), 3, 0, &ext),
			 WIRE_EXT_OK);
	assert_int_equal(ext.number, 3);
	assert_int_equal(ext.open.window, 1 << 16);
	assert_int_equal(ext_decode_way(body, sizeof(body), 3, 1, &ext),
			 WIRE_EXT_WRONG_WAY);
	body[1] = 0;
	body[2] = 0x80;
	assert_int_equal(ext_decode_way(body, sizeof(body), 3, 0, &ext),
			 WIRE_EXT_WRONG_WAY);
	assert_int_equal(ext_decode_way(body, sizeof(body), 3, 1, &ext),
			 WIRE_EXT_OK);
}

/* An OPEN of connection 9 with @len address bytes 'x' and port 80. */
static enum wire_ext_result open_with(uint8_t protocol, uint8_t kind,
				      uint8_t len, struct wire_ext *ext)
{
	uint8_t body[6 + 255 + 6] = { WIRE_OPEN, 9, 0, protocol, kind, len };

	memset(body + 6, 'x', len);
	body[6 + len] = 80;
	return ext_decode(body, 6u + len + 6u, 0, ext);
}

/* The same as a DATAGRAM with two bytes of payload. */
static enum wire_ext_result datagram_with(uint8_t kind, uint8_t len,
					  struct wire_ext *ext)
{
	uint8_t body[5 + 255 + 4] = { WIRE_DATAGRAM, 9, 0, kind, len };

	memset(body + 5, 'x', len);
	return ext_decode(body, 5u + len + 4u, 0, ext);
}

static void kind_and_length_of_an_address_go_together(void **state)
{
	struct wire_ext ext;

	(void)state;
	for (int kind = 0; kind < 256; kind++) {
		for (int len = 0; len < 256; len++) {
			uint8_t k = (uint8_t)kind, l = (uint8_t)len;
			int sound = (kind == 4 && len == 4) ||
				    (kind == 6 && len == 16) ||
				    (kind == 'n' && len > 0);
			int none = kind == 0 && len == 0;

			assert_int_equal(open_with(6, k, l, &ext),
					 sound ? WIRE_EXT_OK
					       : WIRE_EXT_BAD_ADDRESS);
			assert_int_equal(ext.open.id, 9);
			assert_int_equal(ext.open.to.port, 80);
			assert_int_equal(open_with(17, k, l, &ext),
					 sound || none ? WIRE_EXT_OK
						       : WIRE_EXT_BAD_ADDRESS);
			assert_int_equal(datagram_with(k, l, &ext),
					 sound || none ? WIRE_EXT_OK
						       : WIRE_EXT_BAD_ADDRESS);
			assert_int_equal(ext.datagram.id, 9);
		}
	}
}

static void a_protocol_is_tcp_or_udp(void **state)
{
	struct wire_ext ext;

	(void)state;
	for (int protocol = 0; protocol < 256; protocol++) {
		assert_int_equal(open_with((uint8_t)protocol, 4, 4, &ext),
				 protocol == 6 || protocol == 17
				 ? WIRE_EXT_OK : WIRE_EXT_BAD_PROTOCOL);
		assert_int_equal(ext.open.id, 9);
	}
}

static void a_name_with_a_nul_is_refused(void **state)
{
	static const uint8_t body[] = { WIRE_OPEN, 9, 0, 6, 'n', 3, 'a', 0,
					'b', 80, 0, 0, 0, 0, 0 };
	uint8_t buf[WIRE_MESSAGE_MAX];
	struct wire_ext ext;

	(void)state;
	assert_int_equal(ext_decode(body, sizeof(body), 0, &ext),
			 WIRE_EXT_BAD_ADDRESS);
	assert_int_equal(ext.open.id, 9);
	assert_int_equal(wire_ext_put(buf, &ext), 0);
}

static void a_pipe_has_its_place_in_the_count(void **state)
{
	uint8_t body[36] = { WIRE_HELLO, 1 };
	uint8_t buf[WIRE_MESSAGE_MAX];
	struct wire_ext ext;

	(void)state;
	for (int index = 0; index < 256; index++) {
		for (int count = 0; count < 256; count++) {
			int sound = index < count && count <= 64;

			body[22] = (uint8_t)index;
			body[23] = (uint8_t)count;
			assert_int_equal(ext_decode(body, sizeof(body), 0,
						    &ext),
					 sound ? WIRE_EXT_OK
					       : WIRE_EXT_BAD_PIPE);
			assert_int_equal(wire_ext_put(buf, &ext),
					 sound ? 44 : 0);
		}
	}
}

static enum wire_ext_result judge(enum wire_type type, uint16_t id,
				  uint8_t first, int downlink)
{
	uint8_t body[6] = { first };
	struct wire_msg msg = { .type = type, .id = id, .body = body,
				.body_len = 6 };
	struct wire_ext ext;
	enum wire_ext_result result = wire_ext_get(&msg, downlink, &ext);

	assert_int_equal(ext.type, WIRE_EXT_NONE);
	return result;
}

static void messages_of_connections_are_judged_too(void **state)
{
	(void)state;
	for (int down = 0; down < 2; down++) {
		assert_int_equal(judge(WIRE_DATA, 1, 0, down), WIRE_EXT_OK);
		assert_int_equal(judge(WIRE_DATA, 65535, 1, down), WIRE_EXT_OK);
		assert_int_equal(judge(WIRE_SYN, 1, 0, down), WIRE_EXT_SYN);
		assert_int_equal(judge(WIRE_SYN, 0, 0, down), WIRE_EXT_SYN);
		assert_int_equal(judge(WIRE_FIN, 0, 0x77, down),
				 WIRE_EXT_BAD_ID);
		for (int reason = 0; reason < 256; reason++)
			assert_int_equal(judge(WIRE_FIN, 7, (uint8_t)reason,
					       down),
					 reason == 0x77 || reason == 0x99
					 ? WIRE_EXT_OK : WIRE_EXT_BAD_REASON);
	}
}

static void how_much_ends(void **state)
{
	static const enum wire_ext_scope scope[] = {
		[WIRE_EXT_OK] = WIRE_SCOPE_NONE,
		[WIRE_EXT_SYN] = WIRE_SCOPE_SESSION,
		[WIRE_EXT_UNKNOWN] = WIRE_SCOPE_MESSAGE,
		[WIRE_EXT_SHORT] = WIRE_SCOPE_MESSAGE,
		[WIRE_EXT_BAD_ID] = WIRE_SCOPE_MESSAGE,
		[WIRE_EXT_BAD_REASON] = WIRE_SCOPE_CONNECTION,
		[WIRE_EXT_WRONG_WAY] = WIRE_SCOPE_SESSION,
		[WIRE_EXT_BAD_PIPE] = WIRE_SCOPE_PIPE,
		[WIRE_EXT_BAD_PROTOCOL] = WIRE_SCOPE_CONNECTION,
		[WIRE_EXT_BAD_ADDRESS] = WIRE_SCOPE_CONNECTION,
	};

	(void)state;
	for (int i = WIRE_EXT_OK; i <= WIRE_EXT_BAD_ADDRESS; i++)
		assert_int_equal(wire_ext_scope(i), scope[i]);
}

/* Whatever comes: what is taken is put again as it came. */
static void noise_is_refused_or_means_itself(void **state)
{
	struct random r;
	int taken = 0;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 50000; round++) {
		uint8_t body[64], buf[WIRE_MESSAGE_MAX];
		size_t len = random_range(&r, 1, sizeof(body));
		struct wire_ext ext;
		size_t size;

		random_fill(&r, body, len);
		body[0] = (uint8_t)random_below(&r, 18);
		if (body[0] == WIRE_OPEN && len > 5) {
			body[3] = WIRE_PROTOCOL_TCP;
			body[4] = DESTINATION_NAME;
			body[5] = (uint8_t)random_below(&r, 30);
		}
		if (ext_decode(body, len, 9, &ext) != WIRE_EXT_OK)
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
		cmocka_unit_test(every_shorter_body_is_dropped),
		cmocka_unit_test(unknown_types_are_stepped_over),
		cmocka_unit_test(a_connection_is_never_0),
		cmocka_unit_test(who_may_send_what),
		cmocka_unit_test(lp_opens_up_to_32767_and_rp_from_there),
		cmocka_unit_test(kind_and_length_of_an_address_go_together),
		cmocka_unit_test(a_protocol_is_tcp_or_udp),
		cmocka_unit_test(a_name_with_a_nul_is_refused),
		cmocka_unit_test(a_pipe_has_its_place_in_the_count),
		cmocka_unit_test(messages_of_connections_are_judged_too),
		cmocka_unit_test(how_much_ends),
		cmocka_unit_test(noise_is_refused_or_means_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
