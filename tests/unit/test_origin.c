/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>

#include "lp/origin.h"
#include "mux/base/addr.h"

enum { IP4 = 20, IP6 = 40, TCP = 20 };

static const uint8_t wants_v4[] = { 253, 8, 192, 0, 2, 7, 0x1f, 0x90 };
static const uint8_t wants_v6[] = {
	253, 20, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0xbb
};
/* As Linux fills them: MSS, SACK permitted, timestamps, window scale. */
static const uint8_t usual[] = {
	2, 4, 0xff, 0xd7, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7
};

/* A SYN on the heap, so that a byte read beyond it is found. */
struct syn {
	uint8_t *bytes;
	size_t len;
};

static struct syn syn_new(size_t ip, const uint8_t *first, size_t first_len,
			  const uint8_t *option, size_t option_len)
{
	struct syn s = { .len = ip + TCP + first_len + option_len };
	size_t padding = (4 - (first_len + option_len) % 4) % 4;

	s.len += padding;
	s.bytes = calloc(1, s.len);
	assert_non_null(s.bytes);
	s.bytes[0] = ip == IP6 ? 0x60 : (uint8_t)(0x40 | ip / 4);
	s.bytes[ip == IP6 ? 6 : 9] = IPPROTO_TCP;
	s.bytes[ip + 12] = (uint8_t)((s.len - ip) / 4 << 4);
	if (first_len)
		memcpy(s.bytes + ip + TCP, first, first_len);
	if (option_len)
		memcpy(s.bytes + ip + TCP + first_len, option, option_len);
	return s;
}

static void assert_wants(struct syn s, const char *where)
{
	struct sockaddr_storage to;
	char text[ADDR_TEXT];

	assert_int_equal(origin_in_syn(s.bytes, s.len, &to), 0);
	assert_string_equal(addr_text(&to, text), where);
	free(s.bytes);
}

static void assert_says_nothing(struct syn s)
{
	struct sockaddr_storage to;

	assert_int_equal(origin_in_syn(s.bytes, s.len, &to), -ENOENT);
	free(s.bytes);
}

static void syns_say_where(void **state)
{
	(void)state;
	assert_wants(syn_new(IP4, usual, sizeof(usual), wants_v4, sizeof(wants_v4)),
		     "192.0.2.7:8080");
	assert_wants(syn_new(IP6, usual, sizeof(usual), wants_v6, sizeof(wants_v6)),
		     "[2001:db8::9]:443");
	assert_wants(syn_new(IP6, NULL, 0, wants_v4, sizeof(wants_v4)),
		     "192.0.2.7:8080");
	assert_wants(syn_new(IP4, wants_v4, sizeof(wants_v4), usual, sizeof(usual)),
		     "192.0.2.7:8080");
	/* With options of IP. */
	assert_wants(syn_new(IP4 + 12, NULL, 0, wants_v4, sizeof(wants_v4)),
		     "192.0.2.7:8080");
}

static void syns_that_say_nothing(void **state)
{
	static const uint8_t end_first[] = { 0, 253, 8, 192, 0, 2, 7, 0x1f, 0x90 };
	static const uint8_t too_long[] = { 253, 9, 192, 0, 2, 7, 0x1f, 0x90 };
	static const uint8_t no_length[] = { 1, 1, 1, 253 };
	static const uint8_t of_no_length[] = { 253, 0, 192, 0, 2, 7, 0x1f, 0x90 };
	static const uint8_t other_length[] = { 253, 4, 192, 0 };
	struct syn s;

	(void)state;
	assert_says_nothing(syn_new(IP4, usual, sizeof(usual), NULL, 0));
	assert_says_nothing(syn_new(IP4, NULL, 0, end_first, sizeof(end_first)));
	assert_says_nothing(syn_new(IP4, NULL, 0, too_long, sizeof(too_long)));
	assert_says_nothing(syn_new(IP4, NULL, 0, no_length, sizeof(no_length)));
	assert_says_nothing(syn_new(IP4, NULL, 0, of_no_length, sizeof(of_no_length)));
	assert_says_nothing(syn_new(IP4, NULL, 0, other_length, sizeof(other_length)));
	s = syn_new(IP4, NULL, 0, wants_v4, sizeof(wants_v4));
	s.bytes[9] = IPPROTO_UDP;
	assert_says_nothing(s);
	s = syn_new(IP4, NULL, 0, wants_v4, sizeof(wants_v4));
	s.bytes[0] = 0x44;	/* an IP header of 16 bytes */
	assert_says_nothing(s);
	s = syn_new(IP4, NULL, 0, wants_v4, sizeof(wants_v4));
	s.bytes[IP4 + 12] = 0x40;	/* a TCP header of 16 */
	assert_says_nothing(s);
}

/* Cut anywhere, nothing is read behind the cut. */
static void cut_anywhere(void **state)
{
	struct syn whole = syn_new(IP6, usual, sizeof(usual), wants_v6, sizeof(wants_v6));
	struct sockaddr_storage to;
	size_t len;
	uint8_t *part;

	(void)state;
	for (len = 1; len < whole.len; len++) {
		part = malloc(len);
		assert_non_null(part);
		memcpy(part, whole.bytes, len);
		assert_int_equal(origin_in_syn(part, len, &to), -ENOENT);
		free(part);
	}
	assert_int_equal(origin_in_syn(whole.bytes, 0, &to), -ENOENT);
	free(whole.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syns_say_where),
		cmocka_unit_test(syns_that_say_nothing),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
