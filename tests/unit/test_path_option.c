/* SPDX-License-Identifier: MIT */
/* --path: what it means, what is wrong with it, and which pipes are on which path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lp/departure.h"
#include "lp/path_option.h"
#include "mux/base/addr.h"
#include "mux/base/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

static struct path_set set;
static char why[256];

static int set_up(void **state)
{
	(void)state;
	memset(&set, 0, sizeof(set));
	why[0] = '\0';
	return 0;
}

static void add(const char *text)
{
	if (path_option_add(&set, text, why, sizeof(why)))
		fail_msg("%s", why);
}

static void refused(const char *text, const char *line)
{
	unsigned int n = set.n;

	assert_int_equal(path_option_add(&set, text, why, sizeof(why)), -1);
	assert_string_equal(why, line);
	assert_int_equal(set.n, n);
}

static void all_that_can_be_said(void **state)
{
	char text[ADDR_TEXT];

	(void)state;
	add("wifi,src=192.0.2.1,pipes=3,cost=65535,backup");
	add("lte_2,backup,dev=eth0");
	add("six,cost=0,src=2001:db8::1,dev=wlan0");
	assert_int_equal(set.n, 3);
	assert_string_equal(set.path[0].name, "wifi");
	assert_string_equal(addr_host(&set.path[0].src, text), "192.0.2.1");
	assert_string_equal(set.path[0].device, "");
	assert_int_equal(set.path[0].pipes, 3);
	assert_int_equal(set.path[0].cost, 65535);
	assert_true(set.path[0].backup);
	assert_int_equal(set.path[1].src.ss_family, AF_UNSPEC);
	assert_string_equal(set.path[1].device, "eth0");
	assert_int_equal(set.path[1].pipes, 0);
	assert_int_equal(set.path[2].src.ss_family, AF_INET6);
	assert_string_equal(set.path[2].device, "wlan0");
	assert_false(set.path[2].backup);
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	refused("", "--path: '' does not begin with a name: letters, digits, - and _, 15 at most");
	refused("wi fi,dev=eth0", "--path: 'wi fi,dev=eth0' does not begin with a name: letters, digits, - and _, 15 at most");
	refused("a234567890123456,dev=eth0", "--path: 'a234567890123456,dev=eth0' does not begin with a name: letters, digits, - and _, 15 at most");
	refused("wifi", "--path: wifi: it needs src=ADDR or dev=IFACE, by which it leaves this host");
	refused("wifi,pipes=2,backup", "--path: wifi: it needs src=ADDR or dev=IFACE, by which it leaves this host");
	refused("wifi,src=example.org", "--path: wifi: src='example.org' is not the address of a host");
	refused("wifi,src=192.0.2.1:80", "--path: wifi: src='192.0.2.1:80' is not the address of a host");
	refused("wifi,src=0.0.0.0", "--path: wifi: src='0.0.0.0' is not the address of a host");
	refused("wifi,dev=", "--path: wifi: dev='' is not the name of a device");
	refused("wifi,dev=a234567890123456", "--path: wifi: dev='a234567890123456' is not the name of a device");
	refused("wifi,dev=eth0,pipes=0", "--path: wifi: pipes='0' is not a whole number from 1 to 64");
	refused("wifi,dev=eth0,pipes=65", "--path: wifi: pipes='65' is not a whole number from 1 to 64");
	refused("wifi,dev=eth0,pipes=", "--path: wifi: pipes='' is not a whole number from 1 to 64");
	refused("wifi,dev=eth0,pipes=-1", "--path: wifi: pipes='-1' is not a whole number from 1 to 64");
	refused("wifi,dev=eth0,cost=65536", "--path: wifi: cost='65536' is not a whole number from 0 to 65535");
	refused("wifi,dev=eth0,cost=1.5", "--path: wifi: cost='1.5' is not a whole number from 0 to 65535");
	refused("wifi,dev=eth0,fast", "--path: wifi: 'fast' is none of src=ADDR, dev=IFACE, pipes=N, cost=N and backup, each once");
	refused("wifi,dev=eth0,dev=eth1", "--path: wifi: 'dev=eth1' is none of src=ADDR, dev=IFACE, pipes=N, cost=N and backup, each once");
	refused("wifi,backup,backup,dev=eth0", "--path: wifi: 'backup' is none of src=ADDR, dev=IFACE, pipes=N, cost=N and backup, each once");
	refused("wifi,,dev=eth0", "--path: wifi: '' is none of src=ADDR, dev=IFACE, pipes=N, cost=N and backup, each once");
	refused("wifi,dev=eth0,0123456789012345678901234567890123456789012345678901234567890123",
		"--path: wifi: '0123456789012345678901234567890123456789012345678901234567890123' is too long");
}

static void no_name_is_given_twice(void **state)
{
	(void)state;
	add("wifi,dev=eth0");
	add("wifi2,dev=eth0");
	refused("wifi,dev=eth1", "--path: wifi is given twice");
}

static void there_are_seven_at_most(void **state)
{
	char text[32];

	(void)state;
	for (int i = 0; i < PATHS_MAX; i++) {
		snprintf(text, sizeof(text), "p%d,dev=eth%d", i, i);
		add(text);
	}
	refused("p7,dev=eth7", "--path: p7: there are more than 7");
}

static void pipes_are_numbered_through(void **state)
{
	(void)state;
	assert_int_equal(path_set_pipes(&set, 8), 8);
	assert_int_equal(path_set_of(&set, 7), 0);
	assert_null(path_set_name(&set, 0));
	add("a,dev=eth0,pipes=2");
	add("b,dev=eth1");
	add("c,dev=eth2,pipes=1");
	assert_int_equal(path_set_fit(&set, 4, why, sizeof(why)), 0);
	assert_int_equal(path_set_pipes(&set, 4), 7);
	assert_int_equal(path_set_first(&set, 0), 0);
	assert_int_equal(path_set_first(&set, 1), 2);
	assert_int_equal(path_set_first(&set, 2), 6);
	assert_int_equal(path_set_of(&set, 1), 0);
	assert_int_equal(path_set_of(&set, 2), 1);
	assert_int_equal(path_set_of(&set, 5), 1);
	assert_int_equal(path_set_of(&set, 6), 2);
	assert_string_equal(path_set_name(&set, 1), "b");
	assert_null(path_set_name(&set, 3));
}

static void together_they_are_no_more_than_a_session_has(void **state)
{
	(void)state;
	add("a,dev=eth0,pipes=32");
	add("b,dev=eth1");
	assert_int_equal(path_set_fit(&set, 32, why, sizeof(why)), 0);
	set.path[1].pipes = 0;
	assert_int_equal(path_set_fit(&set, 33, why, sizeof(why)), -1);
	assert_string_equal(why, "--path: the paths have 65 pipes together, and a session has 64 at most");
}

static void not_all_are_backups(void **state)
{
	(void)state;
	add("a,dev=eth0,backup");
	assert_int_equal(path_set_fit(&set, 4, why, sizeof(why)), -1);
	assert_string_equal(why, "--path: all paths are backups, and there is none that they could stand in for");
	add("b,dev=eth1");
	assert_int_equal(path_set_fit(&set, 4, why, sizeof(why)), 0);
}

static void backups_have_their_turns_last(void **state)
{
	(void)state;
	assert_int_equal(path_set_turn(&set, 0), 0);
	add("a,dev=eth0,backup");
	add("b,dev=eth1");
	add("c,dev=eth2,backup");
	add("d,dev=eth3");
	assert_int_equal(path_set_turn(&set, 0), 1);
	assert_int_equal(path_set_turn(&set, 1), 3);
	assert_int_equal(path_set_turn(&set, 2), 0);
	assert_int_equal(path_set_turn(&set, 3), 2);
}

static void who_is_not_here_is_named(void **state)
{
	char absent[ABSENT_TEXT];

	(void)state;
	assert_int_equal(path_option_absent(&set, absent), 0);
	assert_string_equal(absent, "");
	add("a,src=203.0.113.77");
	assert_int_equal(path_option_absent(&set, absent), 1);
	assert_string_equal(absent, "a: 203.0.113.77 is none of this host's addresses");
	add("b,dev=lo,src=127.0.0.9");
	assert_int_equal(path_option_absent(&set, absent), 1);
	add("c,dev=nosuchdevice");
	assert_int_equal(path_option_absent(&set, absent), 2);
	assert_string_equal(absent, "a: 203.0.113.77 is none of this host's addresses; c: this host has no device nosuchdevice");
}

static void all_may_be_absent_under_long_names(void **state)
{
	char text[128], absent[ABSENT_TEXT];
	unsigned int i;

	(void)state;
	for (i = 0; i < PATHS_MAX; i++) {
		snprintf(text, sizeof(text), "a_name_as_long%u,src=2001:db8:1111:2222:3333:4444:5555:666%u",
			 i, i);
		add(text);
	}
	assert_int_equal(path_option_absent(&set, absent), PATHS_MAX);
	assert_non_null(strstr(absent, "; a_name_as_long6: 2001:db8:1111:2222:3333:4444:5555:6666 is none of this host's addresses"));
}

static void sockets_leave_by_their_path(void **state)
{
	char device[DEVICE_NAME_MAX + 1], text[ADDR_TEXT];
	struct sockaddr_storage from;
	socklen_t len = sizeof(device);
	int fd;

	(void)state;
	add("a,dev=lo,src=127.0.0.9");
	fd = departure_socket(&set.path[0], TRANSPORT_TCP, AF_INET);
	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device,
				    &len), 0);
	assert_string_equal(device, "lo");
	assert_int_equal(sock_address(fd, &from), 0);
	assert_string_equal(addr_host(&from, text), "127.0.0.9");
	close(fd);
	assert_int_equal(departure_socket(&set.path[0], TRANSPORT_TCP, AF_INET6),
			 -EAFNOSUPPORT);
	add("b,src=203.0.113.77");
	assert_int_equal(departure_socket(&set.path[1], TRANSPORT_TCP, AF_INET),
			 -EADDRNOTAVAIL);
	add("c,dev=nosuchdevice");
	assert_int_equal(departure_socket(&set.path[2], TRANSPORT_TCP, AF_INET),
			 -ENODEV);
	fd = departure_socket(NULL, TRANSPORT_TCP, AF_INET6);
	assert_true(fd >= 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_that_can_be_said, set_up),
		cmocka_unit_test_setup(what_is_wrong_is_named, set_up),
		cmocka_unit_test_setup(no_name_is_given_twice, set_up),
		cmocka_unit_test_setup(there_are_seven_at_most, set_up),
		cmocka_unit_test_setup(pipes_are_numbered_through, set_up),
		cmocka_unit_test_setup(together_they_are_no_more_than_a_session_has, set_up),
		cmocka_unit_test_setup(not_all_are_backups, set_up),
		cmocka_unit_test_setup(backups_have_their_turns_last, set_up),
		cmocka_unit_test_setup(who_is_not_here_is_named, set_up),
		cmocka_unit_test_setup(all_may_be_absent_under_long_names,
				       set_up),
		cmocka_unit_test_setup(sockets_leave_by_their_path, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
