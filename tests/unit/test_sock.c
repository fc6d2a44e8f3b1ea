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

#include "mux/base/addr.h"
#include "mux/base/sock.h"
#include "loopback.h"

static const char some_bytes[65536];

static void a_port_is_taken_once(void **state)
{
	struct sockaddr_storage addr;
	socklen_t len;
	int first, second;

	(void)state;
	assert_int_equal(addr_parse("127.0.0.1:0", NULL, 0, &addr, &len), 0);
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
		cmocka_unit_test(a_port_is_taken_once),
		cmocka_unit_test(queues_are_seen),
		cmocka_unit_test(resets_are_armed_and_disarmed),
		cmocka_unit_test(asking_early_is_no_less_patient),
		cmocka_unit_test(limits_can_be_raised_to_the_hard_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
