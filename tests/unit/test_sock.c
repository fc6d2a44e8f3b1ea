/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "mux/base/sock.h"
#include "loopback.h"

static const char some_bytes[65536];
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

static void a_port_is_taken_once(void **state)
{
	int first, second;

	(void)state;
	assert_int_equal(parse("127.0.0.1:0"), 0);
	first = sock_listen(sock_tcp(AF_INET), &addr, len);
	assert_true(first >= 0);
	assert_int_equal(getsockname(first, (void *)&addr, &len), 0);
	assert_int_equal(sock_listen(sock_tcp(AF_INET), &addr, len), -EADDRINUSE);
	close(first);
	second = sock_listen(sock_tcp(AF_INET), &addr, len);
	assert_true(second >= 0);
	close(second);
}

static void queues_are_seen(void **state)
{
	int fd[2];

	(void)state;
	tcp_pair(fd);
	assert_int_equal(sock_outstanding(fd[0]), 0);
	assert_int_equal(sock_unsent(fd[0]), 0);
	assert_int_equal(sock_unsent(-1), 0);
	while (send(fd[0], some_bytes, sizeof(some_bytes), MSG_NOSIGNAL) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	assert_true(sock_outstanding(fd[0]) > 0);
	assert_true(sock_unsent(fd[0]) <= sock_outstanding(fd[0]));
	close(fd[0]);
	close(fd[1]);
}

/* What the other end sees when this one goes: a reset, or an end. */
static long seen_after_close(void (*prepare)(int fd))
{
	int fd[2];
	char byte;
	long got;

	tcp_pair(fd);
	sock_arm_reset(fd[0]);
	prepare(fd[0]);
	close(fd[0]);
	got = read_some(fd[1], &byte, 1);
	close(fd[1]);
	return got;
}

static void nothing(int fd)
{
	(void)fd;
}

static void resets_are_armed_and_disarmed(void **state)
{
	(void)state;
	assert_int_equal(seen_after_close(nothing), -ECONNRESET);
	assert_int_equal(seen_after_close(sock_orderly), 0);
}

static void set_patience(int fd, int idle, int interval, int count)
{
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static int option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	getsockopt(fd, IPPROTO_TCP, name, &value, &size);
	return value;
}

static void assert_asks_early(int idle, int interval, int count)
{
	int fd = sock_tcp(AF_INET);
	int before = idle + interval * count;
	int after;

	set_patience(fd, idle, interval, count);
	sock_ask_early(fd);
	after = option(fd, TCP_KEEPIDLE) +
		option(fd, TCP_KEEPINTVL) * option(fd, TCP_KEEPCNT);
	assert_in_range(option(fd, TCP_KEEPIDLE), 1, idle < 300 ? idle : 300);
	assert_in_range(after, before - option(fd, TCP_KEEPINTVL), before);
	close(fd);
}

static void asking_early_is_no_less_patient(void **state)
{
	(void)state;
	assert_asks_early(7200, 75, 9);
	assert_asks_early(301, 1, 1);
	assert_asks_early(7200, 1, 1);
	assert_asks_early(32767, 32767, 127);
	assert_asks_early(300, 75, 9);
	assert_asks_early(10, 5, 4);
}

static void limits_can_be_raised_to_the_hard_one(void **state)
{
	struct rlimit before, low;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = 32;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(sock_limit(), 32);
	assert_int_equal(sock_raise_limit(), before.rlim_max);
	assert_int_equal(sock_limit(), before.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
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
		cmocka_unit_test(a_port_is_taken_once),
		cmocka_unit_test(queues_are_seen),
		cmocka_unit_test(resets_are_armed_and_disarmed),
		cmocka_unit_test(asking_early_is_no_less_patient),
		cmocka_unit_test(limits_can_be_raised_to_the_hard_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
