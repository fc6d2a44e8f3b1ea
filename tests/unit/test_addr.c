/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "mux/base/addr.h"

static struct sockaddr_storage addr;
static socklen_t len;

static int parse(const char *text)
{
	return addr_parse(text, "0.0.0.0", 6000, &addr, &len);
}

static void assert_reads(const char *text, const char *as)
{
	char got[ADDR_TEXT];

	assert_int_equal(parse(text), 0);
	assert_string_equal(addr_text(&addr, got), as);
}

static void addresses_are_read(void **state)
{
	(void)state;
	assert_reads("192.0.2.1", "192.0.2.1:6000");
	assert_reads("192.0.2.1:80", "192.0.2.1:80");
	assert_reads("192.0.2.1:0", "192.0.2.1:0");
	assert_reads("192.0.2.1:65535", "192.0.2.1:65535");
	assert_int_equal(len, sizeof(struct sockaddr_in));
	assert_reads("8080", "0.0.0.0:8080");
	assert_reads("::1", "[::1]:6000");
	assert_reads("[::1]", "[::1]:6000");
	assert_reads("[2001:db8::1]:80", "[2001:db8::1]:80");
	assert_int_equal(len, sizeof(struct sockaddr_in6));
	assert_reads("[::ffff:192.0.2.1]:80", "192.0.2.1:80");
	assert_reads("[fe80::1%lo]:80", "[fe80::1%1]:80");
	assert_reads("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%lo]:65535",
		     "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%1]:65535");
}

static void all_else_is_refused(void **state)
{
	static const char *const bad[] = {
		"", ":", ":80", "192.0.2.1:", "192.0.2.1:65536",
		"192.0.2.1:-1", "192.0.2.1:+1", "192.0.2.1: 1", "192.0.2.1:8x",
		"192.0.2.1:000080", "192.0.2", "192.0.2.256", "010.0.0.1",
		"99999", "name", "name:80", "[", "[]", "[::1", "[::1]80",
		"[::1]:", "[::1]:65536", "[192.0.2.1]:80", "::1::2",
		"fe80::1%no-such-interface", " 192.0.2.1", "192.0.2.1 ",
		"11111111111111111111111111111111111111111111111111111111111"
		"1111111111111111111111111111111111111111111111111111111111",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse(bad[i]), -1);
	/* Where an address is needed a port alone is none. */
	assert_int_equal(addr_parse("80", NULL, 1, &addr, &len), -1);
	assert_int_equal(addr_parse("192.0.2.1", NULL, 1, &addr, &len), 0);
}

static void the_host_alone(void **state)
{
	char got[ADDR_TEXT];

	(void)state;
	parse("192.0.2.1:80");
	assert_string_equal(addr_host(&addr, got), "192.0.2.1");
	parse("[2001:db8::1]:80");
	assert_string_equal(addr_host(&addr, got), "2001:db8::1");
	parse("[::ffff:192.0.2.1]:80");
	assert_string_equal(addr_host(&addr, got), "192.0.2.1");
	addr.ss_family = AF_UNIX;
	assert_string_equal(addr_host(&addr, got), "unknown");
	assert_string_equal(addr_text(&addr, got), "unknown");
}

static bool is_loopback(const char *text)
{
	assert_int_equal(parse(text), 0);
	return addr_is_loopback(&addr);
}

static void loopback_in_both_families(void **state)
{
	(void)state;
	assert_true(is_loopback("127.0.0.1"));
	assert_true(is_loopback("127.255.255.255"));
	assert_true(is_loopback("::1"));
	assert_true(is_loopback("::ffff:127.0.0.1"));
	assert_false(is_loopback("128.0.0.1"));
	assert_false(is_loopback("0.0.0.0"));
	assert_false(is_loopback("::"));
	assert_false(is_loopback("::ffff:128.0.0.1"));
}

static bool is_any(const char *text)
{
	assert_int_equal(parse(text), 0);
	return addr_is_any(&addr);
}

static void any_in_both_families(void **state)
{
	(void)state;
	assert_true(is_any("0.0.0.0:80"));
	assert_true(is_any("[::]:80"));
	assert_true(is_any("::ffff:0.0.0.0"));
	assert_false(is_any("0.0.0.1"));
	assert_false(is_any("::1"));
}

static const char *unmapped(const char *text)
{
	static char got[ADDR_TEXT];

	assert_int_equal(parse(text), 0);
	addr_unmap(&addr);
	return addr_text(&addr, got);
}

static void only_mapped_addresses_are_unmapped(void **state)
{
	(void)state;
	assert_string_equal(unmapped("[::ffff:192.0.2.1]:80"), "192.0.2.1:80");
	assert_int_equal(addr.ss_family, AF_INET);
	assert_int_equal(addr_size(&addr), sizeof(struct sockaddr_in));
	assert_string_equal(unmapped("192.0.2.1:80"), "192.0.2.1:80");
	assert_int_equal(addr.ss_family, AF_INET);
	assert_string_equal(unmapped("[64:ff9b::c000:201]:80"),
			    "[64:ff9b::c000:201]:80");
	assert_int_equal(addr.ss_family, AF_INET6);
	assert_int_equal(addr_size(&addr), sizeof(struct sockaddr_in6));
}

static bool same(const char *a, const char *b)
{
	struct sockaddr_storage other;

	assert_int_equal(parse(a), 0);
	other = addr;
	assert_int_equal(parse(b), 0);
	assert_int_equal(addr_same_host(&addr, &other),
			 addr_same_host(&other, &addr));
	return addr_same_host(&addr, &other);
}

static void hosts_are_compared_without_ports(void **state)
{
	(void)state;
	assert_true(same("192.0.2.1:1", "192.0.2.1:2"));
	assert_false(same("192.0.2.1:1", "192.0.2.2:1"));
	assert_true(same("[2001:db8::1]:1", "[2001:db8::1]:2"));
	assert_false(same("[2001:db8::1]:1", "[2001:db8::2]:1"));
	assert_true(same("192.0.2.1:1", "[::ffff:192.0.2.1]:2"));
	assert_false(same("192.0.2.1:1", "[::192.0.2.1]:1"));
	assert_false(same("fe80::1%lo", "fe80::1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_read),
		cmocka_unit_test(all_else_is_refused),
		cmocka_unit_test(the_host_alone),
		cmocka_unit_test(loopback_in_both_families),
		cmocka_unit_test(any_in_both_families),
		cmocka_unit_test(only_mapped_addresses_are_unmapped),
		cmocka_unit_test(hosts_are_compared_without_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
