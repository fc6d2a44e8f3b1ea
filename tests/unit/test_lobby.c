/* SPDX-License-Identifier: MIT */
/*
 * The lobby with real pipes over loopback, in halted time; whoever runs a session of
 * them is played by `host`. Addresses 127.0.0.0/8 are peers that differ.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "mux/base/addr.h"
#include "mux/base/log.h"
#include "mux/base/incidents.h"
#include "mux/base/sock.h"
#include "mux/settings/limits.h"
#include "mux/settings/incident.h"
#include "rp/access.h"
#include "rp/lobby.h"
#include "halted.h"
#include "loopback.h"

enum { SESSIONS = 8, PIPES = 4 };

struct host {
	struct lobby lobby;
	struct loop *loop;
	struct log log;
	struct incidents incidents;
	struct access access;
	struct sockaddr_in entrance;
	bool full;
	struct {
		char peer[ADDR_TEXT];
		int fd[PIPES];
		unsigned int n;
	} session[SESSIONS];
	unsigned int sessions;
};

static struct host host;

static const char *host_objection(struct lobby *l,
				  const struct sockaddr_storage *peer,
				  enum incident *what)
{
	(void)l;
	(void)peer;
	*what = INCIDENT_SESSIONS;
	return host.full ? "it is full" : NULL;
}

static void host_complete(struct lobby *l, const struct sockaddr_storage *peer,
			  const int *fds, unsigned int n)
{
	assert_ptr_equal(l, &host.lobby);
	assert_true(host.sessions < SESSIONS && n <= PIPES);
	addr_host(peer, host.session[host.sessions].peer);
	memcpy(host.session[host.sessions].fd, fds, n * sizeof(*fds));
	host.session[host.sessions++].n = n;
}

static const struct lobby_ops ops = { host_objection, host_complete };

static void open_lobby(unsigned int pipes)
{
	const struct sockaddr_storage *bound;
	struct sockaddr_storage addr;
	enum transport kind;
	socklen_t len;

	lobby_init(&host.lobby, &ops, host.loop, &host.log, &host.incidents,
		   &host.access, pipes);
	assert_int_equal(addr_parse("127.0.0.1:0", NULL, 0, &addr, &len), 0);
	assert_int_equal(entrances_open(&host.lobby.entrances, TRANSPORT_TCP,
					&addr, len), 0);
	bound = entrances_address(&host.lobby.entrances, 0, &kind);
	assert_non_null(bound);
	assert_int_equal(kind, TRANSPORT_TCP);
	assert_null(entrances_address(&host.lobby.entrances, 1, &kind));
	memcpy(&host.entrance, bound, sizeof(host.entrance));
}

static int set_up(void **state)
{
	(void)state;
	memset(&host, 0, sizeof(host));
	clock_halt();
	access_init(&host.access);
	log_init(&host.log, "test", LOG_DEBUG);
	host.loop = loop_new();
	incidents_init(&host.incidents, host.loop, &host.log, incident_kinds);
	return host.loop ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	lobby_close(&host.lobby);
	while (host.sessions) {
		unsigned int s = --host.sessions;

		while (host.session[s].n)
			close(host.session[s].fd[--host.session[s].n]);
	}
	access_fini(&host.access);
	incidents_fini(&host.incidents);
	loop_free(host.loop);
	clock_go_on();
	return 0;
}

static void pass(int64_t ms)
{
	clock_pass(ms * NS_PER_MS);
	run_round(host.loop);
}

/* A pipe from @source, connected as soon as this returns. */
static int pipe_from(const char *source)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_storage addr;
	socklen_t len;

	assert_true(fd >= 0);
	assert_int_equal(addr_parse(source, NULL, 0, &addr, &len), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&host.entrance,
				 sizeof(host.entrance)), 0);
	return fd;
}

static bool as_many_wait(void *arg)
{
	return host.lobby.waiting.n == *(const unsigned int *)arg;
}

static void assert_waiting(unsigned int n)
{
	assert_true(run_rounds(host.loop, "pipes in waiting", as_many_wait,
			       &n));
}

/* @n wait, and a session is made of some of them when @settle_ms have passed, not before. */
static void assert_session_of(unsigned int n, int64_t settle_ms)
{
	unsigned int before = host.sessions;

	assert_waiting(n);
	pass(settle_ms - 1);
	assert_int_equal(host.sessions, before);
	pass(1);
	assert_int_equal(host.sessions, before + 1);
}

struct expectation {
	int fd;
	long got;
};

static bool pipe_says(void *arg)
{
	struct expectation *e = arg;
	char byte;

	e->got = read_some(e->fd, &byte, 1);
	return e->got != -EAGAIN;
}

/* What the other end sees of it: 0 a close, -ECONNRESET a reset. */
static void assert_dismissed(int fd, long how)
{
	struct expectation e = { .fd = fd };

	assert_true(run_rounds(host.loop, "the end of a pipe", pipe_says, &e));
	assert_int_equal(e.got, how);
	close(fd);
}

static uint16_t port_of(int fd, int (*get)(int, struct sockaddr *restrict,
					   socklen_t *restrict))
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	assert_int_equal(get(fd, (void *)&in, &len), 0);
	return ntohs(in.sin_port);
}

static void complete_groups_leave_in_order(void **state)
{
	int fd[3], i;

	(void)state;
	open_lobby(3);
	for (i = 0; i < 3; i++)
		fd[i] = pipe_from("127.0.0.1");
	assert_session_of(3, LOBBY_SETTLE_MIN_MS);
	assert_int_equal(host.lobby.waiting.n, 0);
	assert_int_equal(host.session[0].n, 3);
	assert_string_equal(host.session[0].peer, "127.0.0.1");
	for (i = 0; i < 3; i++) {
		assert_int_equal(port_of(host.session[0].fd[i], getpeername),
				 port_of(fd[i], getsockname));
		close(fd[i]);
	}
}

static void later_pipes_start_the_next(void **state)
{
	int fd[5], i;

	(void)state;
	open_lobby(2);
	for (i = 0; i < 5; i++) {
		fd[i] = pipe_from("127.0.0.1");
		if (i % 2)
			assert_session_of(2, LOBBY_SETTLE_MIN_MS);
	}
	assert_waiting(1);
	for (i = 0; i < 5; i++)
		close(fd[i]);
	assert_waiting(0);
}

static bool as_many_sessions(void *arg)
{
	return host.sessions == *(const unsigned int *)arg;
}

/* One pipe a session: there is nothing to be mixed up. */
static void single_pipes_need_not_wait(void **state)
{
	unsigned int i, all = SESSIONS;
	int fd[SESSIONS];

	(void)state;
	open_lobby(1);
	for (i = 0; i < SESSIONS; i++)
		fd[i] = pipe_from("127.0.0.1");
	assert_true(run_rounds(host.loop, "sessions", as_many_sessions, &all));
	for (i = 0; i < SESSIONS; i++)
		close(fd[i]);
}

/* Two local proxies behind one address, or one with too many pipes. */
static void more_at_once_than_a_session_has(void **state)
{
	int fd[4], i;

	(void)state;
	open_lobby(2);
	for (i = 0; i < 4; i++)
		fd[i] = pipe_from("127.0.0.1");
	assert_waiting(4);
	pass(LOBBY_SETTLE_MIN_MS);
	for (i = 0; i < 4; i++)
		assert_dismissed(fd[i], -ECONNRESET);
	assert_int_equal(host.sessions, 0);
	assert_true(list_empty(&host.lobby.groups));
}

/* A pipe of an earlier attempt is no part of the session. */
static void what_was_left_over_is_closed(void **state)
{
	int stale, fd[3], i;

	(void)state;
	open_lobby(3);
	stale = pipe_from("127.0.0.1");
	assert_waiting(1);
	pass(200);
	for (i = 0; i < 3; i++)
		fd[i] = pipe_from("127.0.0.1");
	assert_session_of(4, LOBBY_SETTLE_MAX_MS);
	assert_dismissed(stale, 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(port_of(host.session[0].fd[i], getpeername),
				 port_of(fd[i], getsockname));
		close(fd[i]);
	}
	assert_int_equal(host.lobby.waiting.n, 0);
}

/* The SYN of one pipe was lost and came again, and that is all that came. */
static void a_late_pipe_completes_its_group(void **state)
{
	int fd[3], i;

	(void)state;
	open_lobby(3);
	for (i = 0; i < 2; i++)
		fd[i] = pipe_from("127.0.0.1");
	assert_waiting(2);
	pass(40);
	fd[i] = pipe_from("127.0.0.1");
	assert_session_of(3, 4 * 40);
	for (i = 0; i < 3; i++)
		close(fd[i]);
}

/* It ended while it was waited whether more come: the group is incomplete. */
static void who_ends_before_the_session_begins(void **state)
{
	int fd[2];

	(void)state;
	open_lobby(2);
	fd[0] = pipe_from("127.0.0.1");
	assert_waiting(1);
	pass(100);
	fd[1] = pipe_from("127.0.0.1");
	assert_waiting(2);
	close(fd[1]);
	assert_waiting(1);
	pass(2 * LOBBY_SETTLE_MAX_MS);
	assert_int_equal(host.sessions, 0);
	close(fd[0]);
}

/* Those that never become complete do not shut others out. */
static void the_oldest_group_makes_room(void **state)
{
	enum { ALL = LOBBY_WAITING_MAX };
	static int fd[ALL];
	int friends[2];
	char from[32];

	(void)state;
	open_lobby(2);
	for (int i = 0; i < ALL; i++) {
		snprintf(from, sizeof(from), "127.1.%d.%d", i / 250,
			 i % 250 + 1);
		fd[i] = pipe_from(from);
		if (i % 64 == 63)
			assert_waiting((unsigned int)i + 1);
	}
	friends[0] = pipe_from("127.0.0.1");
	friends[1] = pipe_from("127.0.0.1");
	assert_dismissed(fd[0], 0);
	assert_dismissed(fd[1], 0);
	assert_session_of(ALL, LOBBY_SETTLE_MIN_MS);
	assert_int_equal(host.lobby.waiting.n, ALL - 2);
	for (int i = 2; i < ALL; i++)
		close(fd[i]);
	close(friends[0]);
	close(friends[1]);
}

static void each_address_has_its_group(void **state)
{
	int a, b, c;

	(void)state;
	open_lobby(2);
	a = pipe_from("127.0.0.1");
	b = pipe_from("127.0.0.2");
	assert_waiting(2);
	assert_int_equal(host.sessions, 0);
	c = pipe_from("127.0.0.2");
	assert_session_of(3, LOBBY_SETTLE_MIN_MS);
	assert_string_equal(host.session[0].peer, "127.0.0.2");
	assert_int_equal(host.lobby.waiting.n, 1);
	close(a);
	close(b);
	close(c);
}

/* More than two sessions could have, and they never stop for a group to be made. */
static void too_many_of_one_address(void **state)
{
	int fd[LOBBY_EACH + 1], other;

	(void)state;
	open_lobby(2);
	other = pipe_from("127.0.0.2");
	for (int i = 0; i <= LOBBY_EACH; i++)
		fd[i] = pipe_from("127.0.0.1");
	for (int i = 0; i <= LOBBY_EACH; i++)
		assert_dismissed(fd[i], -ECONNRESET);
	assert_waiting(1);
	assert_int_equal(host.sessions, 0);
	assert_int_equal(host.incidents.count[INCIDENT_GROUP], 1);
	close(other);
}

/* Two local proxies with as many pipes as there may be: it is seen that there are two. */
static void room_for_two_of_the_largest(void **state)
{
	(void)state;
	open_lobby(PIPES_MAX);
	assert_int_equal(host.lobby.each, 2 * PIPES_MAX);
}

/* Closed, half closed, reset: each leaves, and the others still count. */
static void who_ends_leaves_the_group(void **state)
{
	int stays, goes;

	(void)state;
	open_lobby(3);
	stays = pipe_from("127.0.0.1");
	goes = pipe_from("127.0.0.1");
	assert_waiting(2);
	close(goes);
	assert_waiting(1);
	goes = pipe_from("127.0.0.1");
	assert_waiting(2);
	shutdown(goes, SHUT_WR);
	assert_waiting(1);
	close(goes);
	goes = pipe_from("127.0.0.1");
	assert_waiting(2);
	sock_reset(goes);
	assert_waiting(1);
	assert_int_equal(host.sessions, 0);
	close(stays);
	assert_waiting(0);
	assert_true(list_empty(&host.lobby.groups));
}

/* What a pipe says while it waits is the session's, to the first byte. */
static void nothing_is_read_in_the_lobby(void **state)
{
	char got[8];
	int a, b;

	(void)state;
	open_lobby(2);
	a = pipe_from("127.0.0.1");
	assert_int_equal(send(a, "early", 5, 0), 5);
	assert_waiting(1);
	b = pipe_from("127.0.0.1");
	assert_session_of(2, LOBBY_SETTLE_MIN_MS);
	assert_int_equal(read_some(host.session[0].fd[0], got, 8), 5);
	assert_memory_equal(got, "early", 5);
	close(a);
	close(b);
}

/* In the machine's time: what is looked at is how much of it is used. */
static void unread_bytes_do_not_spin(void **state)
{
	int fd;

	(void)state;
	open_lobby(2);
	fd = pipe_from("127.0.0.1");
	assert_int_equal(send(fd, "early", 5, 0), 5);
	assert_waiting(1);
	clock_go_on();
	assert_true(loop_load(host.loop, 200) < 50);
	assert_int_equal(host.lobby.waiting.n, 1);
	close(fd);
}

static void incomplete_groups_are_closed(void **state)
{
	int a, b, c;

	(void)state;
	open_lobby(3);
	a = pipe_from("127.0.0.1");
	assert_waiting(1);
	pass(1000);
	b = pipe_from("127.0.0.1");
	assert_waiting(2);
	pass(8999);
	c = pipe_from("127.0.0.2");
	assert_waiting(3);
	pass(1);
	assert_dismissed(a, 0);
	assert_dismissed(b, 0);
	pass(9998);
	assert_waiting(1);	/* the other address has its own time */
	pass(1);
	assert_dismissed(c, 0);
	assert_waiting(0);
}

static void only_those_allowed_come_in(void **state)
{
	int a, b;

	(void)state;
	open_lobby(2);
	assert_int_equal(access_allow(&host.access, "127.0.0.2"), 0);
	a = pipe_from("127.0.0.1");
	b = pipe_from("127.0.0.2");
	assert_waiting(1);
	assert_dismissed(a, -ECONNRESET);
	close(b);
}

static void no_room_no_entry(void **state)
{
	int a, b;

	(void)state;
	open_lobby(2);
	host.full = true;
	a = pipe_from("127.0.0.1");
	assert_dismissed(a, -ECONNRESET);
	host.full = false;
	a = pipe_from("127.0.0.1");
	b = pipe_from("127.0.0.1");
	assert_session_of(2, LOBBY_SETTLE_MIN_MS);
	close(a);
	close(b);
}

static void closing_dismisses_all(void **state)
{
	int a, b;

	(void)state;
	open_lobby(2);
	a = pipe_from("127.0.0.1");
	b = pipe_from("127.0.0.2");
	assert_waiting(2);
	lobby_close(&host.lobby);
	assert_int_equal(host.lobby.waiting.n, 0);
	assert_dismissed(a, 0);
	assert_dismissed(b, 0);
	a = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(a, (struct sockaddr *)&host.entrance,
				 sizeof(host.entrance)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	close(a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(complete_groups_leave_in_order),
		TEST(later_pipes_start_the_next),
		TEST(single_pipes_need_not_wait),
		TEST(more_at_once_than_a_session_has),
		TEST(what_was_left_over_is_closed),
		TEST(a_late_pipe_completes_its_group),
		TEST(who_ends_before_the_session_begins),
		TEST(the_oldest_group_makes_room),
		TEST(each_address_has_its_group),
		TEST(too_many_of_one_address),
		TEST(room_for_two_of_the_largest),
		TEST(who_ends_leaves_the_group),
		TEST(nothing_is_read_in_the_lobby),
		TEST(unread_bytes_do_not_spin),
		TEST(incomplete_groups_are_closed),
		TEST(only_those_allowed_come_in),
		TEST(no_room_no_entry),
		TEST(closing_dismisses_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
