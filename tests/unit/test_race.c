/* SPDX-License-Identifier: MIT */
/*
 * A server with several addresses. They stand for sockets of this process: what
 * an address is, its port says. Nobody reads what its bytes are.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "mux/base/addr.h"
#include "mux/base/race.h"
#include "loopback.h"

/* What may be behind an address: its port. */
enum { THERE = 1, REFUSES, SILENT, NO_ROUTE, NO_DESCRIPTOR };

enum { DIALS = RACE_MAX };

static struct {
	struct loop *loop;
	struct race race;
	int there, silent, deaf, filler[8];
	uint16_t there_port, silent_port, refuses_port;
	struct sockaddr_storage addr[DIALS];
	unsigned int n;

	char dialled[DIALS + 1];	/* '4' or '6' for each */
	int64_t at[DIALS];
	unsigned int dials, open;
	int won;		/* the socket, or -1 */
	int lost;		/* the error, or 0 */
} here;

static void set_family(struct sockaddr_storage *addr, char family, uint16_t port)
{
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family == '6' ? AF_INET6 : AF_INET;
	addr_set_port(addr, port);
}

static void add(char family, uint16_t what)
{
	set_family(&here.addr[here.n++], family, what);
}

static int dial(struct race *r, const struct sockaddr_storage *to)
{
	uint16_t what = addr_port(to);
	int fd;

	assert_ptr_equal(r, &here.race);
	here.at[here.dials] = loop_clock();
	here.dialled[here.dials++] = to->ss_family == AF_INET6 ? '6' : '4';
	if (what == NO_ROUTE)
		return -ENETUNREACH;
	if (what == NO_DESCRIPTOR)
		return -EMFILE;
	fd = tcp_connect(what == THERE ? here.there_port :
			 what == SILENT ? here.silent_port :
			 here.refuses_port);
	here.open++;
	return fd;
}

static void closed(struct race *r)
{
	(void)r;
	here.open--;
}

static void won(struct race *r, int fd)
{
	(void)r;
	assert_int_equal(here.won, -1);
	here.won = fd;
}

static void lost(struct race *r, int err)
{
	(void)r;
	assert_int_equal(here.lost, 0);
	here.lost = err;
}

static const struct race_ops ops = { dial, closed, won, lost };

static bool over(void *arg)
{
	(void)arg;
	return here.won >= 0 || here.lost;
}

static void run(void)
{
	race_init(&here.race, &ops, here.loop, here.addr, here.n);
	race_start(&here.race);
	assert_true(run_until(here.loop, "the end of the race", over, NULL));
}

/* A port that nobody else gets, and where nobody listens. */
static int tcp_deaf(uint16_t *port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*port = ntohs(addr.sin_port);
	return fd;
}

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	here.won = -1;
	here.loop = loop_new();
	here.there = tcp_listen(16, &here.there_port);
	here.silent = tcp_listen(0, &here.silent_port);
	for (size_t i = 0; i < 8; i++)
		here.filler[i] = tcp_connect(here.silent_port);
	here.deaf = tcp_deaf(&here.refuses_port);
	return here.loop ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	if (here.won >= 0)
		close(here.won);
	for (size_t i = 0; i < 8; i++)
		close(here.filler[i]);
	close(here.there);
	close(here.silent);
	close(here.deaf);
	loop_free(here.loop);
	return 0;
}

static int64_t ms_between(unsigned int a, unsigned int b)
{
	return (here.at[b] - here.at[a]) / NS_PER_MS;
}

static void one_address(void **state)
{
	(void)state;
	add('4', THERE);
	run();
	assert_true(here.won >= 0);
	assert_int_equal(here.open, 1);
	assert_int_equal(here.dials, 1);
}

/* The second is not tried while the first may still answer in time. */
static void the_first_wins(void **state)
{
	(void)state;
	add('6', THERE);
	add('4', THERE);
	run();
	assert_true(here.won >= 0);
	assert_string_equal(here.dialled, "6");
	assert_int_equal(here.open, 1);
}

static void a_silent_one_costs_one_step(void **state)
{
	(void)state;
	add('6', SILENT);
	add('4', THERE);
	run();
	assert_true(here.won >= 0);
	assert_string_equal(here.dialled, "64");
	assert_in_range(ms_between(0, 1), RACE_STEP_MS - 1, 2 * RACE_STEP_MS);
	assert_int_equal(here.open, 1);	/* the silent one was closed */
}

static void one_that_fails_costs_nothing(void **state)
{
	(void)state;
	add('6', REFUSES);
	add('4', NO_ROUTE);
	add('6', NO_ROUTE);
	add('4', THERE);
	run();
	assert_true(here.won >= 0);
	assert_int_equal(here.dials, 4);
	assert_in_range(ms_between(0, 3), 0, RACE_STEP_MS / 2);
	assert_int_equal(here.open, 1);
}

static void families_take_turns(void **state)
{
	(void)state;
	add('6', REFUSES);
	add('6', REFUSES);
	add('6', REFUSES);
	add('4', REFUSES);
	add('4', REFUSES);
	run();
	assert_string_equal(here.dialled, "64646");
	assert_int_equal(here.lost, ECONNREFUSED);
	assert_int_equal(here.open, 0);
}

static void the_first_family_goes_first(void **state)
{
	(void)state;
	add('4', REFUSES);
	add('6', REFUSES);
	add('6', NO_ROUTE);
	run();
	assert_string_equal(here.dialled, "466");
}

static void what_tells_most_is_told(void **state)
{
	static const uint16_t in_order[] = { NO_ROUTE, NO_DESCRIPTOR, REFUSES };
	static const int tells[] = { ENETUNREACH, EMFILE, ECONNREFUSED };

	for (size_t most = 0; most < 3; most++) {
		add('4', in_order[most]);
		for (size_t i = 0; i < most; i++)
			add('4', in_order[i]);
		run();
		assert_int_equal(here.lost, tells[most]);
		tear_down(state);
		set_up(state);
	}
	add('4', NO_ROUTE);
	add('4', NO_DESCRIPTOR);
	add('4', REFUSES);
	run();
	assert_int_equal(here.lost, ECONNREFUSED);
}

static void all_begun(void)
{
	while (here.dials < here.n) {
		unsigned int before = here.dials;

		assert_int_equal(here.lost, 0);
		loop_load(here.loop, RACE_STEP_MS / 2);
		assert_in_range(here.dials, before, before + 1);
	}
}

static void who_cannot_be_dialled_holds_nobody_up(void **state)
{
	(void)state;
	add('4', SILENT);
	add('6', NO_ROUTE);
	add('4', THERE);
	run();
	assert_true(here.won >= 0);
}

static void stopped_in_the_middle(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		add('4', SILENT);
	race_init(&here.race, &ops, here.loop, here.addr, here.n);
	race_start(&here.race);
	all_begun();
	assert_int_equal(here.open, 3);
	race_stop(&here.race);
	assert_int_equal(here.open, 0);
	loop_load(here.loop, RACE_STEP_MS + 50);
	assert_int_equal(here.dials, 3);
	assert_int_equal(here.lost, 0);
}

static void as_many_as_there_may_be(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < RACE_MAX; i++)
		add(i < RACE_MAX / 2 ? '4' : '6', i % 2 ? NO_ROUTE : REFUSES);
	run();
	assert_int_equal(here.dials, RACE_MAX);
	assert_int_equal(here.lost, ECONNREFUSED);
	assert_int_equal(here.open, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(one_address),
		TEST(the_first_wins),
		TEST(a_silent_one_costs_one_step),
		TEST(one_that_fails_costs_nothing),
		TEST(families_take_turns),
		TEST(the_first_family_goes_first),
		TEST(what_tells_most_is_told),
		TEST(who_cannot_be_dialled_holds_nobody_up),
		TEST(stopped_in_the_middle),
		TEST(as_many_as_there_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
