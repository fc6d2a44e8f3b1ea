/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/addr.h"
#include "mux/base/path_mtu.h"
#include "mux/base/sock.h"

enum { LARGEST = 65507 };	/* of a datagram, by IPv4; loopback takes it in one packet */

static int connected(const char *to, struct sockaddr_storage *addr)
{
	socklen_t len;

	assert_int_equal(addr_parse(to, NULL, 0, addr, &len), 0);
	return sock_connect(sock_udp(addr->ss_family), addr);
}

static void of_a_connected_socket(void **state)
{
	struct sockaddr_storage addr;
	int fd = connected("127.0.0.1:9", &addr);

	(void)state;
	assert_true(fd >= 0);
	assert_true(path_mtu(fd) > LARGEST);
	close(fd);
	fd = connected("[::1]:9", &addr);
	if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT || fd == -ENETUNREACH)
		skip();	/* this machine has no IPv6 */
	assert_true(path_mtu(fd) > LARGEST);
	close(fd);
}

static void of_none(void **state)
{
	int fd = sock_udp(AF_INET);

	(void)state;
	assert_int_equal(path_mtu(fd), -ENOTCONN);
	close(fd);
	assert_int_equal(path_mtu(-1), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_connected_socket),
		cmocka_unit_test(of_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
