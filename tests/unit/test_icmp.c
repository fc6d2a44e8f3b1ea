/* SPDX-License-Identifier: MIT */
/* What lp tells the kernel of a program whose datagram was too large. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lp/icmp.h"
#include "mux/base/addr.h"

static struct sockaddr_storage at(const char *text)
{
	struct sockaddr_storage addr;
	socklen_t len;

	assert_int_equal(addr_parse(text, NULL, 0, &addr, &len), 0);
	return addr;
}

/* As RFC 1071 has it: with its own sum, what is right sums up to all ones. */
static unsigned int sum_of(const uint8_t *buf, size_t len)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += (unsigned int)buf[i] << 8 | buf[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void by_ipv4(void **state)
{
	struct sockaddr_storage from = at("10.1.2.3:258"), to = at("192.0.2.4:443");
	static const uint8_t expected[] = {
		3, 4, 0, 0, 0, 0, 0x05, 0x78,	/* 1400 */
		0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 64, 17, 0, 0,
		10, 1, 2, 3, 192, 0, 2, 4,
		1, 2, 0x01, 0xbb, 0x05, 0xc8, 0, 0,
	};
	uint8_t buf[ICMP_TOO_BIG_MAX];
	size_t n = icmp_put_too_big(buf, &from, &to, 1472, 1400);

	(void)state;
	assert_int_equal(n, sizeof(expected));
	assert_int_equal(sum_of(buf, n), 0xffff);
	assert_int_equal(sum_of(buf + 8, 20), 0xffff);
	buf[2] = buf[3] = buf[18] = buf[19] = 0;
	assert_memory_equal(buf, expected, n);
}

static void by_ipv6(void **state)
{
	struct sockaddr_storage from = at("[2001:db8::5]:258"), to = at("[2001:db8::6]:443");
	static const uint8_t expected[] = {
		2, 0, 0, 0, 0, 0, 0x05, 0x78,
		0x60, 0, 0, 0, 0x05, 0xb4, 17, 64,
		0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,
		0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6,
		1, 2, 0x01, 0xbb, 0x05, 0xb4, 0, 0,
	};
	uint8_t buf[ICMP_TOO_BIG_MAX];

	(void)state;
	assert_int_equal(icmp_put_too_big(buf, &from, &to, 1452, 1400),
			 sizeof(expected));
	assert_int_equal(sizeof(expected), ICMP_TOO_BIG_MAX);
	assert_memory_equal(buf, expected, sizeof(expected));
}

static void without_a_socket(void **state)
{
	struct sockaddr_storage from = at("127.0.0.1:1"), to = at("127.0.0.1:2");
	struct icmp none = { -EPERM, -EAFNOSUPPORT };

	(void)state;
	assert_int_equal(icmp_can(&none, AF_INET), -EPERM);
	assert_int_equal(icmp_can(&none, AF_INET6), -EAFNOSUPPORT);
	assert_int_equal(icmp_too_big(&none, &from, &to, 1, 1400), -EPERM);
	icmp_close(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_ipv4),
		cmocka_unit_test(by_ipv6),
		cmocka_unit_test(without_a_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
