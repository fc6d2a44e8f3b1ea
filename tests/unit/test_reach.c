/* SPDX-License-Identifier: MIT */
/*
 * Where rp lets connections go, put together: its rules, this host's addresses,
 * which are what a getifaddrs() and routes of our own say, and the ports of real listeners.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Behind sys/socket.h, which they need. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "mux/base/addr.h"
#include "mux/base/host.h"
#include "mux/base/log.h"
#include "rp/access.h"
#include "rp/entrances.h"
#include "rp/reach.h"
#include "addr.h"

static const char *const ours[] = { "192.0.2.1", "2001:db8::1" };

enum { OURS = sizeof(ours) / sizeof(*ours) };

static struct ifaddrs interface[OURS + 1];
static struct sockaddr_storage interface_addr[OURS];

static bool no_netlink;

int getifaddrs(struct ifaddrs **all)
{
	socklen_t len;
	size_t i;

	if (no_netlink) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	memset(interface, 0, sizeof(interface));
	for (i = 0; i < OURS; i++) {
		assert_int_equal(addr_parse(ours[i], NULL, 0,
					    &interface_addr[i], &len), 0);
		interface[i].ifa_addr = (void *)&interface_addr[i];
		interface[i].ifa_next = &interface[i + 1];
	}
	*all = interface;	/* the last has no address, as some have */
	return 0;
}

/* The kernel's, but that of hosts it knows those of our getifaddrs(). */
int bind(int fd, const struct sockaddr *to, socklen_t len)
{
	struct sockaddr_storage addr = { 0 }, own;
	size_t i;

	memcpy(&addr, to, len);
	if ((addr.ss_family != AF_INET && addr.ss_family != AF_INET6) ||
	    addr_is_loopback(&addr) || addr_is_any(&addr))
		return (int)syscall(SYS_bind, fd, to, len);
	for (i = 0; i < OURS; i++) {
		own = address(ours[i], 0);
		if (addr_same_host(&addr, &own))
			return 0;
	}
	errno = EADDRNOTAVAIL;
	return -1;
}

void freeifaddrs(struct ifaddrs *all)
{
	assert_ptr_equal(all, interface);
}

/* --- the kernel's routes: to all that is not named here they lead elsewhere --- */

static const struct {
	const char *to;
	unsigned char type;
} routes[] = {
	{ "198.51.100.7", RTN_LOCAL },
	{ "192.0.2.255", RTN_BROADCAST },
	{ "2001:db8:5::7", RTN_LOCAL },
	{ "2001:db8::", RTN_ANYCAST },
};

enum { ROUTES = sizeof(routes) / sizeof(*routes) };

static unsigned int asked;	/* so many times; of the last time: */
static unsigned char type;	/* 0: there is no way */
static bool no_answer;

static unsigned char type_of(const struct nlmsghdr *question)
{
	const struct rtmsg *route = NLMSG_DATA(question);
	const struct rtattr *dst = RTM_RTA(route);
	char text[INET6_ADDRSTRLEN];
	size_t i;

	assert_int_equal(question->nlmsg_type, RTM_GETROUTE);
	assert_int_equal(dst->rta_type, RTA_DST);
	assert_int_equal(route->rtm_src_len, 0);
	assert_non_null(inet_ntop(route->rtm_family, RTA_DATA(dst), text,
				  sizeof(text)));
	for (i = 0; i < ROUTES; i++) {
		if (!strcmp(routes[i].to, text))
			return routes[i].type;
	}
	return strcmp(text, "203.0.113.1") ? RTN_UNICAST : 0;
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	(void)fd;
	(void)flags;
	asked++;
	if (no_answer) {
		errno = ENOBUFS;
		return -1;
	}
	type = type_of(buf);
	return (ssize_t)len;
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	struct {
		struct nlmsghdr head;
		union {
			struct rtmsg route;
			struct nlmsgerr error;
		};
	} answer = {
		.head = { .nlmsg_type = type ? RTM_NEWROUTE : NLMSG_ERROR },
	};

	(void)fd;
	(void)flags;
	if (type)
		answer.route.rtm_type = type;
	else
		answer.error.error = -ENETUNREACH;
	answer.head.nlmsg_len = sizeof(answer);
	assert_true(sizeof(answer) <= len);
	memcpy(buf, &answer, sizeof(answer));
	return sizeof(answer);
}

static struct {
	struct loop *loop;
	struct log log;
	struct access access;
	struct host host;
	struct entrances baseline, extension;
	struct reach reach;
	char why[ACCESS_WHY];
} here;

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	log_init(&here.log, "test", LOG_WARN);
	here.loop = loop_new();
	access_init(&here.access);
	host_open(&here.host, here.loop, &here.log, NULL);
	entrances_init(&here.baseline, here.loop, &here.log, NULL,
		       NULL, NULL);
	entrances_init(&here.extension, here.loop, &here.log, NULL,
		       NULL, NULL);
	here.reach = (struct reach){ &here.access, &here.host,
				     { &here.baseline, &here.extension } };
	return here.loop ? 0 : -1;
}

static int set_up_without_netlink(void **state)
{
	int err;

	no_netlink = true;
	err = set_up(state);
	no_netlink = false;
	return err;
}

static int tear_down(void **state)
{
	(void)state;
	entrances_close(&here.baseline);
	entrances_close(&here.extension);
	host_close(&here.host);
	access_fini(&here.access);
	loop_free(here.loop);
	return 0;
}

/* May a peer from elsewhere go there? */
static bool reaches(const char *text, uint16_t port)
{
	struct sockaddr_storage to = address(text, port);

	return reach_allows(&here.reach, &to, false, here.why);
}

static bool reaches_from_here(const char *text, uint16_t port)
{
	struct sockaddr_storage to = address(text, port);

	return reach_allows(&here.reach, &to, true, here.why);
}

static void addresses_of_this_host(void **state)
{
	struct sockaddr_storage addr;

	(void)state;
	for (size_t i = 0; i < OURS; i++) {
		addr = address(ours[i], 80);
		assert_true(host_has(&here.host, &addr));
		assert_false(reaches(ours[i], 80));
		assert_non_null(strstr(here.why, "this host"));
		assert_true(reaches_from_here(ours[i], 80));
	}
	addr = address("::ffff:192.0.2.1", 80);
	assert_true(host_has(&here.host, &addr));
	addr = address("127.3.2.1", 80);
	assert_true(host_has(&here.host, &addr));
	addr = address("::1", 80);
	assert_true(host_has(&here.host, &addr));
	addr = address("2001:db8::2", 80);
	assert_false(host_has(&here.host, &addr));
	assert_true(reaches("192.0.2.2", 80));
	assert_true(reaches("2001:db8::2", 80));
}

/* No device has them, but what is sent there does not leave. */
static void addresses_that_routes_bring_here(void **state)
{
	char mapped[ADDR_TEXT];

	(void)state;
	for (size_t i = 0; i < ROUTES; i++) {
		if (reaches(routes[i].to, 80))
			fail_msg("%s is open", routes[i].to);
		assert_non_null(strstr(here.why, "this host"));
		assert_true(reaches_from_here(routes[i].to, 80));
	}
	snprintf(mapped, sizeof(mapped), "::ffff:%s", routes[0].to);
	assert_false(reaches(mapped, 80));
	assert_true(reaches("203.0.113.1", 80));	/* connect() will say why not */
}

/* For each datagram somebody wants to know; an answer is good for a second. */
static void the_kernel_is_asked_once(void **state)
{
	unsigned int before = asked;

	(void)state;
	assert_false(reaches(ours[0], 80));
	assert_int_equal(asked, before);
	for (int i = 0; i < 10; i++) {
		assert_true(reaches("192.0.2.2", 80));
		assert_false(reaches("198.51.100.7", 80));
	}
	assert_int_equal(asked, before + 2);
}

static void what_cannot_be_asked_about_is_closed(void **state)
{
	(void)state;
	no_answer = true;
	assert_false(reaches("192.0.2.2", 80));
	no_answer = false;
	assert_true(reaches("192.0.2.2", 80));
}

/* Then rules about them hold all the same, and the line that says so is no more than that. */
static void addresses_that_cannot_be_read(void **state)
{
	struct sockaddr_storage mapped = address("::ffff:192.0.2.1", 80);

	(void)state;
	assert_null(here.host.addr);
	assert_false(reaches(ours[0], 80));
	assert_non_null(strstr(here.why, "this host"));
	assert_true(reaches_from_here(ours[0], 80));
	assert_true(host_has(&here.host, &mapped));
	assert_true(reaches("192.0.2.2", 80));
	assert_true(reaches("2001:db8::2", 80));
}

/* What IPv4's rules close is not to be had by an IPv6 address that leads there. */
static void no_way_around_ipv4(void **state)
{
	static const char *const prefix[] = {
		"::ffff:", "::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:",
	};
	static const char *const closed[] = {
		"127.0.0.1", "192.0.2.1", "169.254.169.254", "10.1.2.3",
		"0.0.0.0", "224.0.0.1", "255.255.255.255",
	};
	char text[ADDR_TEXT];

	(void)state;
	assert_int_equal(access_deny(&here.access, "10.0.0.0/8"), 0);
	assert_int_equal(access_permit(&here.access, "::/0"), 0);
	for (size_t p = 0; p < sizeof(prefix) / sizeof(*prefix); p++) {
		for (size_t i = 0; i < sizeof(closed) / sizeof(*closed); i++) {
			snprintf(text, sizeof(text), "%s%s", prefix[p],
				 closed[i]);
			if (reaches(text, 80))
				fail_msg("%s is open", text);
		}
		snprintf(text, sizeof(text), "%s11.1.2.3", prefix[p]);
		if (!reaches(text, 80))
			fail_msg("%s is closed: %s", text, here.why);
	}
}

/* One that goes out as IPv6 has to please the rules of IPv6, too. */
static void both_families_rules_hold(void **state)
{
	(void)state;
	access_deny(&here.access, "64:ff9b::/96");
	access_permit(&here.access, "10.0.0.0/8");
	assert_true(reaches("10.1.2.3", 80));
	assert_false(reaches("64:ff9b::10.1.2.3", 80));
}

static uint16_t listen_at(struct entrances *e, const char *text)
{
	struct sockaddr_storage addr = address(text, 0);
	enum transport kind;
	unsigned int i = 0;

	assert_int_equal(entrances_open(e, TRANSPORT_TCP, &addr,
					addr_size(&addr)), 0);
	while (entrances_address(e, i + 1, &kind))
		i++;
	return addr_port(entrances_address(e, i, &kind));
}

static bool is_its_own(const char *text, uint16_t port)
{
	return !reaches_from_here(text, port) &&
	       strstr(here.why, "rp itself");
}

static void ports_of_its_own(void **state)
{
	uint16_t one, any6, any4;

	(void)state;
	access_permit(&here.access, "0.0.0.0/0");
	access_permit(&here.access, "::/0");
	one = listen_at(&here.baseline, "::1");
	assert_true(is_its_own("::1", one));
	assert_false(is_its_own("2001:db8::1", one));
	assert_false(is_its_own("127.0.0.1", one));
	assert_false(is_its_own("::1", (uint16_t)(one ^ 1)));
	any6 = listen_at(&here.extension, "::");
	assert_true(is_its_own("::1", any6));
	assert_true(is_its_own("2001:db8::1", any6));
	assert_false(is_its_own("2001:db8::2", any6));
	assert_false(is_its_own("192.0.2.1", any6));
	any4 = listen_at(&here.baseline, "0.0.0.0");
	assert_true(is_its_own("192.0.2.1", any4));
	assert_true(is_its_own("127.9.9.9", any4));
	assert_true(is_its_own("64:ff9b::192.0.2.1", any4));
	if (any4 != any6)
		assert_false(is_its_own("2001:db8::1", any4));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(addresses_of_this_host),
		TEST(addresses_that_routes_bring_here),
		TEST(the_kernel_is_asked_once),
		TEST(what_cannot_be_asked_about_is_closed),
		cmocka_unit_test_setup_teardown(addresses_that_cannot_be_read,
						set_up_without_netlink, tear_down),
		TEST(no_way_around_ipv4),
		TEST(both_families_rules_hold),
		TEST(ports_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
