/* SPDX-License-Identifier: MIT */
/*
 * What came at a UDP socket, read over loopback.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/addr.h"
#include "mux/base/sock.h"
#include "mux/base/udp_in.h"

enum { MANY = 3 * UDP_IN_MOST / 2, LARGE = 20000, PATIENCE_MS = 30000 };

static struct {
	int in, out;		/* each connected to the other */
	uint16_t out_port;
	unsigned int n, told;	/* of so many where they were sent to */
	size_t len[MANY];
	uint8_t first[MANY], last[MANY];	/* bytes of each, 0 where it is empty */
} here;

static void came(void *arg, struct sockaddr_storage *from, const uint8_t *buf,
		 size_t len)
{
	size_t there = len < UDP_IN_SLOT ? len : UDP_IN_SLOT;

	assert_ptr_equal(arg, &here);
	assert_int_equal(addr_port(from), here.out_port);
	assert_true(here.n < MANY);
	here.len[here.n] = len;
	here.first[here.n] = len ? buf[0] : 0;
	here.last[here.n++] = len ? buf[there - 1] : 0;
}

static void join(int from, int to)
{
	struct sockaddr_storage addr;

	assert_int_equal(sock_address(to, &addr), 0);
	assert_int_equal(sock_connect(from, &addr), from);
}

static int set_up(void **state)
{
	struct sockaddr_storage addr;
	socklen_t len;

	(void)state;
	memset(&here, 0, sizeof(here));
	assert_int_equal(addr_parse("127.0.0.1:0", NULL, 0, &addr, &len), 0);
	here.in = sock_bound_udp(&addr);
	here.out = sock_bound_udp(&addr);
	assert_true(here.in >= 0 && here.out >= 0);
	join(here.in, here.out);
	join(here.out, here.in);
	assert_int_equal(sock_address(here.out, &addr), 0);
	here.out_port = addr_port(&addr);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(here.in);
	close(here.out);
	return 0;
}

static void say(uint8_t byte, size_t len)
{
	uint8_t buf[LARGE];

	memset(buf, byte, len);
	assert_int_equal(send(here.out, buf, len, 0), len);
}

/* The kernel may take its time on a busy machine. Each look brings UDP_IN_MOST at most. */
static void read_until(unsigned int n)
{
	struct pollfd p = { .fd = here.in, .events = POLLIN };
	unsigned int before;

	while (here.n < n) {
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		before = here.n;
		assert_int_equal(udp_in_read(here.in, came, &here), 0);
		assert_true(here.n > before && here.n - before <= UDP_IN_MOST);
	}
	assert_int_equal(here.n, n);
}

static void all_come_in_their_order(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < MANY; i++)
		say((uint8_t)i, i * 10);
	read_until(MANY);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(here.len[i], i * 10);
		assert_int_equal(here.first[i], i);
		assert_int_equal(here.last[i], i);
	}
	assert_int_equal(udp_in_read(here.in, came, &here), -EAGAIN);
	assert_int_equal(here.n, MANY);
}

static void what_is_cut_off_is_told(void **state)
{
	(void)state;
	say(1, UDP_IN_SLOT);
	say(2, UDP_IN_SLOT + 1);
	say(3, LARGE);
	say(4, 1);
	read_until(4);
	assert_int_equal(here.len[0], UDP_IN_SLOT);
	assert_int_equal(here.len[1], UDP_IN_SLOT + 1);
	assert_int_equal(here.len[2], LARGE);
	assert_int_equal(here.last[2], 3);
	assert_int_equal(here.len[3], 1);
	assert_int_equal(here.first[3], 4);
}

static void came_to(void *arg, struct sockaddr_storage *from,
		    const struct sockaddr_storage *to, const uint8_t *buf,
		    size_t len)
{
	struct sockaddr_storage own;

	assert_int_equal(sock_address(here.in, &own), 0);
	if (to->ss_family)
		assert_true(addr_same(to, &own));
	here.told += to->ss_family == own.ss_family;
	came(arg, from, buf, len);
}

static void read_one_to(void)
{
	struct pollfd p = { .fd = here.in, .events = POLLIN };

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(udp_in_read_to(here.in, came_to, &here), 0);
}

static void where_it_was_sent_to_is_told_if_asked_for(void **state)
{
	(void)state;
	say(1, 10);
	read_one_to();
	assert_int_equal(here.n, 1);
	assert_int_equal(here.told, 0);
	assert_int_equal(udp_in_tell_to(here.in, AF_INET), 0);
	say(2, 20);
	read_one_to();
	assert_int_equal(here.n, 2);
	assert_int_equal(here.told, 1);
	assert_int_equal(here.len[1], 20);
	assert_int_equal(here.first[1], 2);
	assert_int_equal(udp_in_read_to(here.in, came_to, &here), -EAGAIN);
}

static void that_nobody_is_there_is_told(void **state)
{
	struct pollfd p = { .fd = here.out };

	(void)state;
	close(here.in);
	assert_int_equal(send(here.out, "x", 1, 0), 1);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(udp_in_read(here.out, came, &here), -ECONNREFUSED);
	here.in = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_come_in_their_order,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_cut_off_is_told,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(where_it_was_sent_to_is_told_if_asked_for,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(that_nobody_is_there_is_told,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
