/* SPDX-License-Identifier: MIT */
/*
 * --pipe LIST: what is understood, what is refused and how, and which pipe is
 * made of what.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "mux/options/options.h"
#include "mux/pipe/transport.h"
#include "loopback.h"

static char why[512];

static struct transport_set parse(const char *text)
{
	struct transport_set set;

	assert_int_equal(transport_set_parse(&set, text, why, sizeof(why)), 0);
	return set;
}

static void assert_text(const struct transport_set *set, const char *want)
{
	char text[TRANSPORT_SET_TEXT];

	assert_string_equal(transport_set_text(set, text), want);
}

static int fit(const char *text, unsigned int pipes, bool loose)
{
	struct transport_set set = parse(text);

	strcpy(why, "");
	return transport_set_fit(&set, pipes, loose, why, sizeof(why));
}

static void assert_refused(const char *text, const char *reason)
{
	struct transport_set set = parse("mptcp");

	strcpy(why, "");
	assert_int_equal(transport_set_parse(&set, text, why, sizeof(why)), -1);
	assert_non_null(strstr(why, reason));
	assert_null(strchr(why, '\n'));
	assert_true(transport_set_is(&set, TRANSPORT_MPTCP));
}

static void lists_are_understood(void **state)
{
	struct transport_set set = parse("sctp");

	(void)state;
	assert_true(transport_set_is(&set, TRANSPORT_SCTP));
	assert_text(&set, "sctp");
	set = parse("tcp:4,sctp:60");
	assert_int_equal(set.n, 2);
	assert_true(transport_set_has(&set, TRANSPORT_TCP));
	assert_true(transport_set_has(&set, TRANSPORT_SCTP));
	assert_false(transport_set_has(&set, TRANSPORT_MPTCP));
	assert_false(transport_set_is(&set, TRANSPORT_TCP));
	assert_text(&set, "tcp:4,sctp:60");
	set = parse("sctp,mptcp,tcp");
	assert_text(&set, "sctp,mptcp,tcp");
	/* The longest there can be has room. */
	set = parse("mptcp:9999,sctp:9999,tcp:9999");
	assert_text(&set, "mptcp:9999,sctp:9999,tcp:9999");
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	assert_refused("", "''");
	assert_refused("udp", "'udp' is not one of tcp, mptcp, sctp");
	assert_refused("TCP", "'TCP'");
	assert_refused("tc", "'tc'");
	assert_refused("tcpp", "'tcpp'");
	assert_refused("tcp,", "''");
	assert_refused(",tcp", "''");
	assert_refused("tcp,tcp", "tcp is named twice");
	assert_refused("sctp:2,tcp:1,sctp:1", "sctp is named twice");
	assert_refused("tcp:", "'tcp:'");
	assert_refused("tcp:0", "'tcp:0'");
	assert_refused("tcp:-1", "'tcp:-1'");
	assert_refused("tcp:4x,sctp:2", "'tcp:4x'");
	assert_refused("tcp:4:4", "'tcp:4:4'");
	assert_refused("sctp:99999", "'sctp:99999'");
	assert_refused("tcp: 4", "'tcp: 4'");
	assert_refused("tcp sctp", "'tcp sctp'");
}

static void counts_add_up(void **state)
{
	(void)state;
	assert_int_equal(fit("tcp", 8, false), 0);
	assert_int_equal(fit("sctp:8", 8, false), 0);
	assert_int_equal(fit("tcp:4,sctp:4", 8, false), 0);
	assert_int_equal(fit("tcp:1,mptcp:2,sctp:5", 8, false), 0);
	assert_int_equal(fit("sctp:7", 8, false), -1);
	assert_string_equal(why, "--pipe: the counts add up to 7, and PIPES is 8");
	assert_int_equal(fit("tcp:5,sctp:4", 8, false), -1);
	assert_non_null(strstr(why, "9, and PIPES is 8"));
	assert_int_equal(fit("tcp,sctp", 8, false), -1);
	assert_non_null(strstr(why, "add up to PIPES, 8"));
	assert_int_equal(fit("tcp:8,sctp", 8, false), -1);
	assert_int_equal(fit("tcp,sctp:4", 8, false), -1);
}

/* Who only listens does not care how many of each come. */
static void a_listener_needs_no_counts(void **state)
{
	(void)state;
	assert_int_equal(fit("tcp,sctp", 8, true), 0);
	assert_int_equal(fit("tcp:4,sctp", 8, true), 0);
	assert_int_equal(fit("tcp:4,sctp:4", 8, true), 0);
	assert_int_equal(fit("tcp:4,sctp:5", 8, true), -1);
	assert_int_equal(fit("tcp:8,sctp", 8, true), -1);
}

static void pipes_come_in_the_order_of_the_list(void **state)
{
	static const enum transport want[] = {
		TRANSPORT_SCTP, TRANSPORT_SCTP, TRANSPORT_TCP, TRANSPORT_MPTCP,
	};
	struct transport_set set = parse("sctp:2,tcp:1,mptcp:1");
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(transport_set_of(&set, i), want[i]);
	set = parse("mptcp");
	assert_int_equal(transport_set_fit(&set, 64, false, why, sizeof(why)),
			 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(transport_set_of(&set, i), TRANSPORT_MPTCP);
}

static void the_kernel_is_asked(void **state)
{
	struct transport_set set = parse("tcp,mptcp,sctp");
	unsigned int i;

	(void)state;
	for (i = 0; i < set.n; i++) {
		struct transport_set one = { 1, { set.kind[i] }, { 0 } };
		int fd = transport_socket(set.kind[i], AF_INET);
		int missing = transport_set_try(&one, why, sizeof(why));

		assert_int_equal(missing, fd < 0 ? -1 : 0);
		if (fd < 0) {
			const char *name = transport_name(set.kind[i]);

			assert_memory_equal(why, name, strlen(name));
			continue;
		}
		assert_int_equal(transport_of(fd), set.kind[i]);
		close(fd);
	}
}

static void a_want_of_descriptors_says_nothing_of_the_kernel(void **state)
{
	struct transport_set set = parse("mptcp");
	int fd = transport_socket(TRANSPORT_MPTCP, AF_INET), answer;
	struct rlimit most, none;

	(void)state;
	if (fd < 0)
		skip();
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &most), 0);
	none = (struct rlimit){ 0, most.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	answer = transport_set_try(&set, why, sizeof(why));
	setrlimit(RLIMIT_NOFILE, &most);
	assert_int_equal(answer, -1);
	assert_string_equal(why, "mptcp: whether this kernel has MPTCP cannot be tried: Too many open files");
}

static void a_socket_tells_what_it_is(void **state)
{
	int fd[2];

	(void)state;
	tcp_pair(fd);
	assert_int_equal(transport_of(fd[0]), TRANSPORT_TCP);
	assert_true(transport_fell_back(fd[0]));
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(transport_of(-1), TRANSPORT_TCP);
}

static void both_parts_of_the_check_are_made(void **state)
{
	struct settings settings;

	(void)state;
	settings_init(&settings);
	assert_int_equal(settings_fit(&settings, 64, false, why, sizeof(why)), 0);
	assert_int_equal(settings.transports.count[0], 64);
	settings.transports = parse("tcp:3");
	assert_int_equal(settings_fit(&settings, 4, false, why, sizeof(why)), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_understood),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(counts_add_up),
		cmocka_unit_test(a_listener_needs_no_counts),
		cmocka_unit_test(pipes_come_in_the_order_of_the_list),
		cmocka_unit_test(the_kernel_is_asked),
		cmocka_unit_test(a_want_of_descriptors_says_nothing_of_the_kernel),
		cmocka_unit_test(a_socket_tells_what_it_is),
		cmocka_unit_test(both_parts_of_the_check_are_made),
	};

	return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
