/* SPDX-License-Identifier: MIT */
/* The name in a client's first bytes: SNI and Host, whole and cut at each byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lp/first_bytes.h"

struct hello {
	uint8_t bytes[512];
	size_t len;
};

static void put(struct hello *h, unsigned int bytes, size_t n)
{
	while (bytes--)
		h->bytes[h->len++] = (uint8_t)(n >> 8 * bytes);
}

/* An extension of @len bytes that nobody knows, one with @name, and one more. */
static struct hello hello_with(const char *name, size_t len)
{
	struct hello h = { .len = 0 };
	size_t n = strlen(name);

	put(&h, 1, 22);
	put(&h, 2, 0x0301);
	put(&h, 2, 300);
	put(&h, 1, 1);
	put(&h, 3, 296);
	put(&h, 2, 0x0303);
	memset(h.bytes + h.len, 0x5a, 32);
	h.len += 32;
	put(&h, 1, 32);
	h.len += 32;
	put(&h, 2, 4);
	put(&h, 4, 0x13011302);
	put(&h, 1, 1);
	put(&h, 1, 0);
	put(&h, 2, 4 + len + 9 + n + 4);
	put(&h, 2, 0x0a0a);
	put(&h, 2, len);
	h.len += len;
	put(&h, 2, 0);
	put(&h, 2, n + 5);
	put(&h, 2, n + 3);
	put(&h, 1, 0);
	put(&h, 2, n);
	memcpy(h.bytes + h.len, name, n);
	h.len += n;
	put(&h, 2, 0x2b);
	put(&h, 2, 0);
	return h;
}

static bool is_named(const uint8_t *bytes, size_t len, const char *name)
{
	char is[HOST_MAX + 1] = "";
	uint8_t *copy = malloc(len ? len : 1);	/* its end is guarded */
	bool known;

	memcpy(copy, bytes, len);
	known = first_bytes_name(copy, len, is);
	free(copy);
	if (name && known)
		assert_string_equal(is, name);
	return known;
}

static void a_hello_tells_its_name_from_its_last_byte_on(void **state)
{
	struct hello h = hello_with("www.example.net", 7);
	size_t whole = h.len - 4, len;	/* what follows is not needed */

	(void)state;
	for (len = 0; len <= h.len; len++)
		assert_int_equal(is_named(h.bytes, len, "www.example.net"),
				 len >= whole);
}

static void a_hello_with_another_name_has_none(void **state)
{
	struct hello h = hello_with("", 0);

	(void)state;
	assert_false(is_named(h.bytes, h.len, NULL));
	h = hello_with("two words", 0);
	assert_false(is_named(h.bytes, h.len, NULL));
	h = hello_with("example.net", 3);
	assert_true(is_named(h.bytes, h.len, "example.net"));
	h.bytes[0] = 23;
	assert_false(is_named(h.bytes, h.len, NULL));
	h.bytes[0] = 22;
	h.bytes[5] = 2;
	assert_false(is_named(h.bytes, h.len, NULL));
}

static bool text_is(const char *text, const char *name)
{
	return is_named((const uint8_t *)text, strlen(text), name);
}

static void a_request_tells_its_host(void **state)
{
	static const char request[] =
		"GET / HTTP/1.1\r\nAccept: */*\r\nhOST:  www.example.net:8080 \r\nX: y\r\n\r\n";
	size_t whole = (size_t)(strstr(request, "X:") - request), len;

	(void)state;
	for (len = 0; len < sizeof(request); len++)
		assert_int_equal(is_named((const uint8_t *)request, len,
					  "www.example.net"), len >= whole);
	assert_true(text_is("POST /a HTTP/1.1\nHost: a.b\n", "a.b"));
}

static void what_is_no_request_has_no_host(void **state)
{
	(void)state;
	assert_false(text_is("GET / HTTP/1.0\r\nHost: a\r\n\r\n", NULL));
	assert_false(text_is("get / HTTP/1.1\r\nHost: a\r\n\r\n", NULL));
	assert_false(text_is("HTTP/1.1\r\nHost: a\r\n\r\n", NULL));
	assert_false(text_is("GET / HTTP/1.1\r\n\r\nHost: a\r\n", NULL));
	assert_false(text_is("GET / HTTP/1.1\r\nHost:\r\n\r\n", NULL));
	assert_false(text_is("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", NULL));
	assert_false(text_is("SSH-2.0-OpenSSH_9.2\r\n", NULL));
	assert_false(text_is("", NULL));
}

static void a_host_may_be_only_so_long(void **state)
{
	char text[512], name[300];

	(void)state;
	memset(name, 'x', sizeof(name));
	name[HOST_MAX] = '\0';
	snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", name);
	assert_true(text_is(text, name));
	snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %sx\r\n\r\n", name);
	assert_false(text_is(text, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_tells_its_name_from_its_last_byte_on),
		cmocka_unit_test(a_hello_with_another_name_has_none),
		cmocka_unit_test(a_request_tells_its_host),
		cmocka_unit_test(what_is_no_request_has_no_host),
		cmocka_unit_test(a_host_may_be_only_so_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
