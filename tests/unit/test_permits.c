/* SPDX-License-Identifier: MIT */
/* --permit-listen: what it means, and what it covers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mux/base/addr.h"
#include "rp/permits.h"

static bool covers(const char *permit, const char *wish)
{
	struct permits p = { .n = 0 };
	struct sockaddr_storage addr;
	socklen_t len;
	bool yes;

	assert_int_equal(permits_add(&p, permit), 0);
	assert_int_equal(addr_parse(wish, NULL, 0, &addr, &len), 0);
	yes = permits_cover(&p, &addr);
	permits_fini(&p);
	return yes;
}

static void without_an_address_it_is_loopback(void **state)
{
	(void)state;
	assert_true(covers("8080", "127.0.0.1:8080"));
	assert_true(covers("8080", "127.9.9.9:8080"));
	assert_true(covers("8080", "[::1]:8080"));
	assert_false(covers("8080", "0.0.0.0:8080"));
	assert_false(covers("8080", "[::]:8080"));
	assert_false(covers("8080", "192.0.2.1:8080"));
	assert_false(covers("8080", "127.0.0.1:8081"));
}

static void a_range_has_both_of_its_ends(void **state)
{
	(void)state;
	assert_false(covers("80-90", "127.0.0.1:79"));
	assert_true(covers("80-90", "127.0.0.1:80"));
	assert_true(covers("80-90", "127.0.0.1:90"));
	assert_false(covers("80-90", "127.0.0.1:91"));
	assert_true(covers("1-65535", "127.0.0.1:65535"));
	assert_false(covers("1-65535", "127.0.0.1:0"));
}

static void an_address_is_that_one(void **state)
{
	(void)state;
	assert_true(covers("192.0.2.1:80", "192.0.2.1:80"));
	assert_false(covers("192.0.2.1:80", "192.0.2.2:80"));
	assert_false(covers("192.0.2.1:80", "0.0.0.0:80"));
	assert_false(covers("192.0.2.1:80", "127.0.0.1:80"));
	assert_true(covers("[2001:db8::1]:80-81", "[2001:db8::1]:81"));
	assert_true(covers("[::ffff:192.0.2.1]:80", "192.0.2.1:80"));
}

static void all_addresses_are_those_of_a_family(void **state)
{
	(void)state;
	assert_true(covers("0.0.0.0:80", "0.0.0.0:80"));
	assert_true(covers("0.0.0.0:80", "192.0.2.1:80"));
	assert_false(covers("0.0.0.0:80", "[::1]:80"));
	assert_true(covers("[::]:80", "[2001:db8::1]:80"));
	assert_false(covers("[::]:80", "127.0.0.1:80"));
}

static void what_it_cannot_be(void **state)
{
	static const char *const bad[] = {
		"", "x", "0", "65536", "80-", "-80", "90-80", "80-90-95",
		"127.0.0.1", "127.0.0.1:", ":80", "::1:80", "[::1]", "[::1]80",
		"host:80", "127.0.0.1:80-x", "0.0.0.0/0:80", " 80",
	};
	struct permits p = { .n = 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(permits_add(&p, bad[i]), -EINVAL);
	assert_int_equal(p.n, 0);
	permits_fini(&p);
}

static void several_add_up(void **state)
{
	struct permits p = { .n = 0 };
	struct sockaddr_storage addr;
	socklen_t len;

	(void)state;
	addr_parse("127.0.0.1:81", NULL, 0, &addr, &len);
	assert_false(permits_cover(&p, &addr));
	assert_int_equal(permits_add(&p, "80"), 0);
	assert_int_equal(permits_add(&p, "81"), 0);
	assert_true(permits_cover(&p, &addr));
	permits_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_address_it_is_loopback),
		cmocka_unit_test(a_range_has_both_of_its_ends),
		cmocka_unit_test(an_address_is_that_one),
		cmocka_unit_test(all_addresses_are_those_of_a_family),
		cmocka_unit_test(what_it_cannot_be),
		cmocka_unit_test(several_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
