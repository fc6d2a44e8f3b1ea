/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lp/socks_udp.h"

static struct destination to;
static size_t head;

static void assert_sound(const char *bytes, size_t len, const char *text,
			 size_t size)
{
	char got[DESTINATION_TEXT];

	assert_int_equal(socks_udp_get((const uint8_t *)bytes, len, &to, &head),
			 SOCKS_UDP_SOUND);
	assert_string_equal(destination_text(&to, got), text);
	assert_int_equal(head, size);
	/* Every shorter piece of the header is none. */
	for (size_t cut = 0; cut < size; cut++)
		assert_int_equal(socks_udp_get((const uint8_t *)bytes, cut, &to,
					       &head), SOCKS_UDP_GARBAGE);
}

#define SOUND(bytes, text, size) \
	assert_sound(bytes, sizeof(bytes) - 1, text, size)

static void assert_is(enum socks_udp_verdict verdict, const char *bytes,
		      size_t len)
{
	assert_int_equal(socks_udp_get((const uint8_t *)bytes, len, &to, &head),
			 verdict);
}

#define GARBAGE(bytes) \
	assert_is(SOCKS_UDP_GARBAGE, bytes, sizeof(bytes) - 1)

static void headers(void **state)
{
	(void)state;
	SOUND("\0\0\0\1\300\0\2\7\0\65payload", "192.0.2.7:53", 10);
	SOUND("\0\0\0\1\300\0\2\7\0\65", "192.0.2.7:53", 10);
	SOUND("\0\0\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\xff\xffx",
	      "[2001:db8::1]:65535", 22);
	SOUND("\0\0\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\300\0\2\7\0\1",
	      "192.0.2.7:1", 22);
	SOUND("\0\0\0\3\4name\0\1", "name:1", 11);
}

static void what_is_none(void **state)
{
	(void)state;
	GARBAGE("\1\0\0\1\300\0\2\7\0\65");
	GARBAGE("\0\1\0\1\300\0\2\7\0\65");
	GARBAGE("\0\0\0\0\300\0\2\7\0\65");
	GARBAGE("\0\0\0\2\300\0\2\7\0\65");
	GARBAGE("\0\0\0\1\300\0\2\7\0\0");	/* no port */
	GARBAGE("\0\0\0\3\0\0\1");		/* an empty name, */
	GARBAGE("\0\0\0\3\3a\0b\0\1");		/* and no name */
}

static void fragments(void **state)
{
	(void)state;
	assert_is(SOCKS_UDP_FRAGMENT, "\0\0\1\1\300\0\2\7\0\65", 10);
	assert_is(SOCKS_UDP_FRAGMENT, "\0\0\x80\1\300\0\2\7\0\65", 10);
}

static void what_is_put_is_read(void **state)
{
	uint8_t addr[16] = { 0x20, 1, [15] = 9 }, buf[SOCKS_UDP_HEAD_MAX];
	struct destination from[] = {
		destination_ipv4(addr, 1), destination_ipv6(addr, 65535),
		destination_name("name", 4, 1), { .kind = DESTINATION_NONE },
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t len = socks_udp_put(buf, &from[i]);

		assert_int_equal(socks_udp_get(buf, len, &to, &head),
				 SOCKS_UDP_SOUND);
		assert_int_equal(head, len);
		assert_memory_equal(&to, &from[i], sizeof(to));
	}
	assert_int_equal(socks_udp_put(buf, &from[2]), 0);
	assert_int_equal(socks_udp_put(buf, &from[3]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(fragments),
		cmocka_unit_test(what_is_put_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
