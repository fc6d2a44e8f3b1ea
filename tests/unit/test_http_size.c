/* SPDX-License-Identifier: MIT */
/* How many bytes of HTTP answers are still to come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mux/conn/http_size.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define NOT_KNOWN UINT64_MAX

static void feed(struct http_size *h, const char *text)
{
	http_size_feed(h, (const uint8_t *)text, strlen(text));
}

/* What is known behind @text, whole or byte by byte. */
static uint64_t left_behind(const char *text)
{
	struct http_size whole = { 0 }, crumbs = { 0 };

	feed(&whole, text);
	for (size_t i = 0; text[i]; i++)
		http_size_feed(&crumbs, (const uint8_t *)text + i, 1);
	assert_int_equal(whole.state, crumbs.state);
	assert_int_equal(whole.left, crumbs.left);
	return whole.state == HTTP_NONE ? NOT_KNOWN : http_size_left(&whole);
}

static const char *fault_of(const char *text, bool ended)
{
	struct http_size h = { 0 };

	feed(&h, text);
	return http_size_fault(&h, ended);
}

/* It is told, so that a wrong order has a reason. */
static void a_length_that_is_not_so_is_named(void **state)
{
	static const char *const wrong[] = {
		OK "Content-Length: 5, 6\r\n\r\n",
		OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
		OK "Content-Length: 5\r\n\r\nabcdefg",
	};
	static const char *const honest[] = {
		"", "ssh", OK "\r\nabc", OK "Content-Length: 3\r\n\r\nabc",
		OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		OK "Content-Length: 3\r\n\r\nabc" OK "\r\nmore",
		"HTTP/1.1 101 Switching Protocols\r\n\r\nabc",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_non_null(fault_of(wrong[i], false));
	for (size_t i = 0; i < sizeof(honest) / sizeof(*honest); i++)
		assert_null(fault_of(honest[i], true));
	assert_null(fault_of(OK "Content-Length: 5\r\n\r\nabc", false));
	assert_non_null(fault_of(OK "Content-Length: 5\r\n\r\nabc", true));
}

static void a_length_is_what_remains(void **state)
{
	static const struct { const char *text; uint64_t left; } known[] = {
		{ "", 0 },
		{ OK "Content-Length: 5\r\n", 0 },
		{ OK "Content-Length: 5\r\n\r\n", 5 },
		{ OK "Content-Length: 5\r\n\r\nab", 3 },
		{ OK "Content-Length: 5\r\n\r\nabcde", 0 },
		{ OK "content-LENGTH:5 \n\n", 5 },
		{ OK "Content-Length:\t 1125899906842624\r\n\r\n",
		  UINT64_C(1) << 50 },
		{ "HTTP/1.0 404 Not Found\r\nX: y\r\nContent-Length: 7\r\n\r\n",
		  7 },
		{ OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 5 },
		{ OK "X-Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 6 },
		/* One answer after the other. */
		{ OK "Content-Length: 2\r\n\r\nab" OK "Content-Length: 9\r\n\r\nx",
		  8 },
		{ OK "Content-Length: 0\r\n\r\n" OK "Content-Length: 3\r\n\r\n", 3 },
		{ "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"
		  OK "Content-Length: 4\r\n\r\n", 4 },
		{ "HTTP/1.1 204 No Content\r\n\r\n" OK "Content-Length: 4\r\n\r\n",
		  4 },
		{ "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
		  OK "Content-Length: 4\r\n\r\n", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_int_equal(left_behind(known[i].text), known[i].left);
}

/* Nobody knows how many there are: what is told is what comes behind them. */
static void chunks_are_stepped_over(void **state)
{
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"
	static const struct { const char *text; uint64_t left; } known[] = {
		{ CHUNKED, 0 },
		{ CHUNKED "5\r\nab", 0 },
		{ CHUNKED "2\r\nab\r\n0\r\n\r\n" OK "Content-Length: 4\r\n\r\n", 4 },
		{ CHUNKED "A;name=value\r\n0123456789\r\n0 \r\nX: y\r\n\r\n"
		  OK "Content-Length: 4\r\n\r\n", 4 },
		/* Chunked or not, the length says nothing then. */
		{ OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "1\r\nx\r\n0\r\n\r\n" OK "Content-Length: 4\r\n\r\n", 4 },
		{ CHUNKED "x\r\n", NOT_KNOWN },
		{ CHUNKED "\r\n", NOT_KNOWN },
		{ CHUNKED "5x\r\n", NOT_KNOWN },
		{ CHUNKED "ffffffffffffffffffff\r\n", NOT_KNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_int_equal(left_behind(known[i].text), known[i].left);
}

static void what_is_something_else_is_not_known(void **state)
{
	static const char *const texts[] = {
		"\x16\x03\x01", "SSH-2.0-OpenSSH\r\n", "GET / HTTP/1.1\r\n",
		"HTTP/2 200\r\n", "HTTP/1.x 200 OK\r\n", "HTTP/1.1 20\r\n",
		"HTTP/1.1 abc\r\n", "HTTP/1.1\r\n", "\r\n" OK,
		OK "\r\n", OK "Content-Type: text/html\r\n\r\n",
		OK "Content-Length: \r\n\r\n", OK "Content-Length: -1\r\n\r\n",
		OK "Content-Length: 5x\r\n\r\n", OK "Content-Length: 5, 5\r\n\r\n",
		OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
		OK "Content-Length: 1125899906842625\r\n\r\n",
		OK "Content-Length: 99999999999999999999999\r\n\r\n",
		OK "Content-Length:                                               "
		   "                 5\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nContent-Length: 5\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(left_behind(texts[i]), NOT_KNOWN);
}

static void a_head_without_an_end_is_given_up(void **state)
{
	struct http_size h = { 0 };

	(void)state;
	feed(&h, OK);
	for (int i = 0; i < HTTP_HEAD_MAX / 8; i++)
		feed(&h, "X: yyyy\n");
	assert_int_equal(h.state, HTTP_NONE);
	h = (struct http_size){ 0 };
	feed(&h, OK);
	for (int i = 0; i <= HTTP_HEAD_MAX; i++)
		feed(&h, "y");
	assert_int_equal(h.state, HTTP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_length_that_is_not_so_is_named),
		cmocka_unit_test(a_length_is_what_remains),
		cmocka_unit_test(chunks_are_stepped_over),
		cmocka_unit_test(what_is_something_else_is_not_known),
		cmocka_unit_test(a_head_without_an_end_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
