/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lp/endpoint.h"
#include "lp/rule.h"
#include "mux/base/addr.h"

static char why[256];

/* --- HOST:PORT --- */

static void assert_endpoint(const char *text, uint16_t dflt, const char *host,
			    uint16_t port)
{
	struct endpoint e;

	assert_int_equal(endpoint_parse(&e, text, dflt, why, sizeof(why)), 0);
	assert_string_equal(e.host, host);
	assert_int_equal(e.port, port);
}

static void assert_no_endpoint(const char *text, uint16_t dflt,
			       const char *part_of_why)
{
	struct endpoint e;

	why[0] = '\0';
	assert_int_equal(endpoint_parse(&e, text, dflt, why, sizeof(why)), -1);
	assert_non_null(strstr(why, part_of_why));
}

static void endpoints(void **state)
{
	(void)state;
	assert_endpoint("example.org:80", 0, "example.org", 80);
	assert_endpoint("192.0.2.1", 6000, "192.0.2.1", 6000);
	assert_endpoint("192.0.2.1:65535", 6000, "192.0.2.1", 65535);
	assert_endpoint("[2001:db8::1]:443", 6000, "2001:db8::1", 443);
	assert_endpoint("[::1]", 6000, "::1", 6000);
	assert_endpoint("2001:db8::1", 6000, "2001:db8::1", 6000);
	assert_endpoint("fe80::1%eth0", 6000, "fe80::1%eth0", 6000);
}

static void endpoints_that_are_none(void **state)
{
	char longest[HOST_MAX + 2];

	(void)state;
	assert_no_endpoint("", 6000, "host is missing");
	assert_no_endpoint(":80", 6000, "host is missing");
	assert_no_endpoint("[]:80", 6000, "host is missing");
	assert_no_endpoint("h", 0, "port is missing");
	assert_no_endpoint("h:", 6000, "'' is not a port");
	assert_no_endpoint("h:0", 6000, "'0' is not a port");
	assert_no_endpoint("h:65536", 6000, "'65536' is not a port");
	assert_no_endpoint("h:000080", 6000, "'000080' is not a port");
	assert_no_endpoint("h:-1", 6000, "'-1' is not a port");
	assert_no_endpoint("h:8o", 6000, "'8o' is not a port");
	assert_no_endpoint("[::1", 6000, "brackets");
	assert_no_endpoint("[::1]80", 6000, "brackets");
	assert_no_endpoint("a b:80", 6000, "'a b' is not a host");
	assert_no_endpoint("http://h:80", 6000, "is not a host");
	assert_no_endpoint("user@h:80", 6000, "is not a host");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_no_endpoint(longest, 6000, "more than 253");
	longest[HOST_MAX] = '\0';
	assert_endpoint(longest, 6000, longest, 6000);
}

static void endpoints_as_text(void **state)
{
	char text[ENDPOINT_TEXT];
	struct endpoint e;

	(void)state;
	assert_int_equal(endpoint_parse(&e, "h:6000", 0, why, sizeof(why)), 0);
	assert_string_equal(endpoint_text(&e, text), "h:6000");
	assert_int_equal(endpoint_parse(&e, "::1", 6000, why, sizeof(why)), 0);
	assert_string_equal(endpoint_text(&e, text), "[::1]:6000");
}

/* --- rules --- */

static void assert_rule(const char *text, const char *addr, const char *to,
			enum destination_kind kind)
{
	char listen[ADDR_TEXT], host[ENDPOINT_TEXT];
	char text_of_dst[DESTINATION_TEXT];
	struct rule r;

	assert_int_equal(rule_parse(&r, text, why, sizeof(why)), 0);
	assert_string_equal(addr_text(&r.addr, listen), addr);
	assert_string_equal(endpoint_text(&r.to, host), to);
	assert_string_equal(destination_text(&r.dst, text_of_dst), to);
	assert_int_equal(r.dst.kind, kind);
}

static void assert_no_rule(const char *text, const char *part_of_why)
{
	struct rule r;

	why[0] = '\0';
	assert_int_equal(rule_parse(&r, text, why, sizeof(why)), -1);
	assert_non_null(strstr(why, part_of_why));
}

static void rules(void **state)
{
	(void)state;
	assert_rule("8080:example.org:80", "127.0.0.1:8080", "example.org:80",
		    DESTINATION_NAME);
	assert_rule("8080:192.0.2.7:80", "127.0.0.1:8080", "192.0.2.7:80",
		    DESTINATION_IPV4);
	assert_rule("0.0.0.0:1:h:65535", "0.0.0.0:1", "h:65535",
		    DESTINATION_NAME);
	assert_rule("[::1]:8080:h:80", "[::1]:8080", "h:80", DESTINATION_NAME);
	assert_rule("[::]:8080:10.0.0.1:80", "[::]:8080", "10.0.0.1:80",
		    DESTINATION_IPV4);
	assert_rule("8080:[::1]:80", "127.0.0.1:8080", "[::1]:80",
		    DESTINATION_IPV6);
	assert_rule("127.0.0.1:8080:[2001:db8::1]:80", "127.0.0.1:8080",
		    "[2001:db8::1]:80", DESTINATION_IPV6);
	assert_rule("[::1]:8080:[2001:db8::1]:80", "[::1]:8080",
		    "[2001:db8::1]:80", DESTINATION_IPV6);
}

static void rules_for_datagrams(void **state)
{
	struct rule r;

	(void)state;
	assert_rule("udp:53:example.org:53", "127.0.0.1:53", "example.org:53",
		    DESTINATION_NAME);
	assert_rule("udp:[::1]:53:[2001:db8::1]:54", "[::1]:53",
		    "[2001:db8::1]:54", DESTINATION_IPV6);
	assert_int_equal(rule_parse(&r, "udp:1:h:2", why, sizeof(why)), 0);
	assert_true(r.udp);
	assert_int_equal(rule_parse(&r, "1:udp:2", why, sizeof(why)), 0);
	assert_false(r.udp);
	assert_no_rule("udp:53:53", "there is too little of it");
	assert_no_rule("udp:", "there is too little of it");
	assert_no_rule("udp:0:h:53", "'0' is not a port");
	assert_no_rule("tcp:1:h:53", "listen on");
}

/* Which any rp can be asked for. */
static void a_mapped_address_is_ipv4(void **state)
{
	char text_of_dst[DESTINATION_TEXT];
	struct rule r;

	(void)state;
	assert_int_equal(rule_parse(&r, "8080:[::ffff:192.0.2.7]:80", why,
				    sizeof(why)), 0);
	assert_int_equal(r.dst.kind, DESTINATION_IPV4);
	assert_string_equal(destination_text(&r.dst, text_of_dst),
			    "192.0.2.7:80");
}

static void rules_that_are_none(void **state)
{
	(void)state;
	assert_no_rule("80::180:intranet:80", "'80::180' is not a numeric address");
	assert_no_rule("", "too little");
	assert_no_rule("80", "too little");
	assert_no_rule("h:80", "too little");
	assert_no_rule("[::1]:80", "too little");
	assert_no_rule(":h:80", "'' is not a port");
	assert_no_rule("0:h:80", "'0' is not a port");
	assert_no_rule("x:h:80", "'x' is not a port");
	assert_no_rule("99999:h:80", "'99999' is not a port");
	assert_no_rule("8080:h:0", "'0' is not a port");
	assert_no_rule("8080:h:", "'' is not a port");
	assert_no_rule("8080::80", "host is missing");
	assert_no_rule("8080:[::g]:80", "'::g' is not an IPv6");
	assert_no_rule("8080:[fe80::1%lo]:80", "is not an IPv6");
	assert_no_rule("name:8080:h:80", "'name:8080' is not a numeric");
	assert_no_rule("1.2.3:8080:h:80", "'1.2.3:8080' is not a numeric");
	assert_no_rule("8080:::1:80", "is not");
	assert_no_rule("8080:h:80:90", "is not");
}

/* Cut anywhere, a rule is read or refused, but nothing is read beyond it. */
static void rules_cut_anywhere(void **state)
{
	static const char whole[] = "[2001:db8::1%lo]:8080:[::1]:80";
	char part[sizeof(whole)];
	size_t from, len;

	(void)state;
	for (from = 0; from < sizeof(whole) - 1; from++) {
		for (len = 0; from + len < sizeof(whole); len++) {
			struct rule r;

			memset(part, 0, sizeof(part));
			memcpy(part, whole + from, len);
			why[0] = '\0';
			if (rule_parse(&r, part, why, sizeof(why)))
				assert_true(why[0] != '\0');
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints),
		cmocka_unit_test(endpoints_that_are_none),
		cmocka_unit_test(endpoints_as_text),
		cmocka_unit_test(rules),
		cmocka_unit_test(rules_for_datagrams),
		cmocka_unit_test(a_mapped_address_is_ipv4),
		cmocka_unit_test(rules_that_are_none),
		cmocka_unit_test(rules_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
