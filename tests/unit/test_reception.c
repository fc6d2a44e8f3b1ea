/* SPDX-License-Identifier: MIT */
/*
 * Pipes of the extension until they have said HELLO, over real sockets and in halted
 * time. Addresses 127.0.0.0/8 are peers that differ.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "mux/base/addr.h"
#include "mux/base/log.h"
#include "mux/base/incidents.h"
#include "mux/base/sock.h"
#include "mux/session/greeting.h"
#include "mux/settings/incident.h"
#include "rp/access.h"
#include "rp/reception.h"
#include "halted.h"
#include "loopback.h"

enum { GREETED = 4, PIPES = RECEPTION_MAX + 8 };

static struct {
	struct reception reception;
	struct loop *loop;
	struct log log;
	struct incidents incidents;
	struct access access;
	struct sockaddr_storage entrance;
	struct {
		char peer[ADDR_TEXT];
		struct wire_hello hello;
		int fd;
	} greeted[GREETED];
	unsigned int n;
	int pipe[PIPES];
	unsigned int pipes;
	int64_t each;		/* ns that a greeting takes, while the clock stands */
} here;

static void greeted(struct reception *r, const struct sockaddr_storage *peer,
		    const struct wire_hello *hello, struct conduit conduit)
{
	assert_ptr_equal(r, &here.reception);
	assert_true(here.n < GREETED);
	addr_host(peer, here.greeted[here.n].peer);
	here.greeted[here.n].hello = *hello;
	here.greeted[here.n++].fd = conduit.fd;
	if (here.each)
		clock_pass(here.each);
}

static int set_up(void **state)
{
	struct sockaddr_storage addr;
	enum transport kind;
	socklen_t len;

	(void)state;
	memset(&here, 0, sizeof(here));
	clock_halt();
	access_init(&here.access);
	log_init(&here.log, "test", LOG_ERROR);
	here.loop = loop_new();
	incidents_init(&here.incidents, here.loop, &here.log, incident_kinds);
	reception_init(&here.reception, greeted, here.loop, &here.log,
		       &here.incidents, &here.access);
	assert_int_equal(addr_parse("127.0.0.1:0", NULL, 0, &addr, &len), 0);
	assert_int_equal(entrances_open(&here.reception.entrances,
					TRANSPORT_TCP, &addr, len), 0);
	here.entrance = *entrances_address(&here.reception.entrances, 0, &kind);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	reception_close(&here.reception);
	assert_int_equal(here.reception.waiting.n, 0);
	while (here.n)
		close(here.greeted[--here.n].fd);
	while (here.pipes)
		close(here.pipe[--here.pipes]);
	access_fini(&here.access);
	incidents_fini(&here.incidents);
	loop_free(here.loop);
	clock_go_on();
	return 0;
}

static void pass(int64_t ms)
{
	clock_pass(ms * NS_PER_MS);
	run_round(here.loop);
}

/* A pipe from @source, connected as soon as this returns. */
static int pipe_from(const char *source)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_storage addr;
	socklen_t len;

	assert_true(fd >= 0 && here.pipes < PIPES);
	assert_int_equal(addr_parse(source, NULL, 0, &addr, &len), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&here.entrance,
				 addr_size(&here.entrance)), 0);
	here.pipe[here.pipes++] = fd;
	return fd;
}

/* But for the first @said bytes, which were said before. */
static void say_from(int fd, size_t said, uint8_t pipe, uint8_t pipes,
		     uint8_t session)
{
	struct wire_ext what = { .type = WIRE_HELLO };
	uint8_t buf[WIRE_MESSAGE_MAX];
	size_t len;

	what.hello.version = WIRE_EXT_VERSION;
	what.hello.features = WIRE_FEATURES_VERSION_1;
	what.hello.pipe = pipe;
	what.hello.pipes = pipes;
	what.hello.session[0] = session;
	len = wire_ext_put(buf, &what);
	assert_true(len > said);
	assert_int_equal(write(fd, buf + said, len - said), len - said);
}

static void say_hello(int fd, uint8_t pipe, uint8_t pipes, uint8_t session)
{
	say_from(fd, 0, pipe, pipes, session);
}

static bool as_many_wait(void *arg)
{
	return here.reception.waiting.n == *(const unsigned int *)arg;
}

static void assert_waiting(unsigned int n)
{
	assert_true(run_rounds(here.loop, "pipes that wait", as_many_wait, &n));
}

static bool as_many_greeted(void *arg)
{
	return here.n == *(const unsigned int *)arg;
}

static void assert_greeted(unsigned int n)
{
	assert_true(run_rounds(here.loop, "greetings", as_many_greeted, &n));
}

/* What a pipe ends with: 0 in order, -errno; -EAGAIN: it is open. */
static long ending(int fd)
{
	char byte;

	return read_some(fd, &byte, 1);
}

static bool has_ended(void *arg)
{
	return ending(*(const int *)arg) != -EAGAIN;
}

static void who_says_hello_is_handed_on(void **state)
{
	int fd = pipe_from("127.0.0.7");
	char rest[8];

	(void)state;
	assert_waiting(1);
	assert_int_equal(here.n, 0);
	say_hello(fd, 3, 64, 9);
	assert_int_equal(write(fd, "behind", 6), 6);
	assert_greeted(1);
	assert_int_equal(here.reception.waiting.n, 0);
	assert_string_equal(here.greeted[0].peer, "127.0.0.7");
	assert_int_equal(here.greeted[0].hello.pipe, 3);
	assert_int_equal(here.greeted[0].hello.pipes, 64);
	assert_int_equal(here.greeted[0].hello.session[0], 9);
	assert_int_equal(recv(here.greeted[0].fd, rest, sizeof(rest), 0), 6);
	assert_memory_equal(rest, "behind", 6);
}

/* As the baseline could not tell: two local proxies dial in turn. */
static void two_behind_one_address(void **state)
{
	int first = pipe_from("127.0.0.7"), second = pipe_from("127.0.0.7");

	(void)state;
	say_hello(second, 0, 2, 22);
	assert_greeted(1);
	say_hello(first, 0, 5, 11);
	assert_greeted(2);
	assert_int_equal(here.greeted[0].hello.session[0], 22);
	assert_int_equal(here.greeted[0].hello.pipes, 2);
	assert_int_equal(here.greeted[1].hello.session[0], 11);
	assert_int_equal(here.greeted[1].hello.pipes, 5);
}

static void who_is_silent_is_closed(void **state)
{
	int silent, half;

	(void)state;
	assert_int_equal(here.reception.patience, 5 * NS_PER_SEC);
	silent = pipe_from("127.0.0.7");
	half = pipe_from("127.0.0.7");
	assert_int_equal(write(half, "\0\0\0", 3), 3);
	assert_waiting(2);
	pass(4999);
	assert_int_equal(here.reception.waiting.n, 2);
	pass(1);
	assert_int_equal(here.reception.waiting.n, 0);
	assert_true(run_rounds(here.loop, "an end", has_ended, &half));
	assert_true(run_rounds(here.loop, "an end", has_ended, &silent));
	assert_int_equal(ending(silent), 0);
	assert_int_equal(here.n, 0);
}

static void who_speaks_the_baseline_is_closed(void **state)
{
	static const uint8_t syn[] = {
		5, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 33, 0xbb, 1
	};
	int fd = pipe_from("127.0.0.7");

	(void)state;
	assert_waiting(1);
	assert_int_equal(write(fd, syn, sizeof(syn)), sizeof(syn));
	assert_waiting(0);
	assert_true(run_rounds(here.loop, "an end", has_ended, &fd));
	assert_int_equal(here.n, 0);
}

static void who_leaves_is_forgotten(void **state)
{
	(void)state;
	pipe_from("127.0.0.7");
	assert_waiting(1);
	close(here.pipe[--here.pipes]);
	assert_waiting(0);
}

static void who_is_not_allowed_is_reset(void **state)
{
	int stranger, friend;

	(void)state;
	access_allow(&here.access, "127.0.0.8");
	stranger = pipe_from("127.0.0.7");
	assert_true(run_rounds(here.loop, "a reset", has_ended, &stranger));
	friend = pipe_from("127.0.0.8");
	assert_waiting(1);
	say_hello(friend, 0, 1, 1);
	assert_greeted(1);
}

/* An address that floods shuts out itself alone. */
static void so_many_of_one_address(void **state)
{
	int other = pipe_from("127.0.0.8"), first;
	unsigned int i;

	(void)state;
	if (sock_raise_limit() < 2 * PIPES + 100)
		skip();
	assert_waiting(1);
	first = pipe_from("127.0.0.7");
	for (i = 1; i < RECEPTION_EACH; i++)
		pipe_from("127.0.0.7");
	assert_waiting(1 + RECEPTION_EACH);
	assert_int_equal(ending(first), -EAGAIN);
	pipe_from("127.0.0.7");
	assert_true(run_rounds(here.loop, "the oldest", has_ended, &first));
	assert_waiting(1 + RECEPTION_EACH);
	say_hello(other, 0, 1, 1);
	assert_greeted(1);
}

/* Whose HELLO came in the same batch as others of its address does not go for them. */
static void who_has_said_it_stays(void **state)
{
	unsigned int i;
	int fd;

	(void)state;
	for (i = 0; i < RECEPTION_EACH; i++)
		pipe_from("127.0.0.7");
	assert_waiting(RECEPTION_EACH);
	fd = here.pipe[0];
	say_hello(fd, 0, 2, 1);	/* the oldest, unread as yet */
	pipe_from("127.0.0.7");
	assert_greeted(1);
	assert_int_equal(here.greeted[0].hello.pipes, 2);
	assert_int_equal(ending(fd), -EAGAIN);
}

/* The head of a message that is longer than any HELLO: nothing more of it is read. */
static void what_is_too_long_is_closed(void **state)
{
	static const uint8_t head[] = { 0, 0, 0, 0, 0, 0, 0x08, 0x10 };
	int fd = pipe_from("127.0.0.7");

	(void)state;
	assert_waiting(1);
	assert_int_equal(write(fd, head, sizeof(head)), sizeof(head));
	assert_waiting(0);
	assert_int_equal(here.incidents.count[INCIDENT_HELLO], 1);
	assert_int_equal(here.n, 0);
}

/* A byte at a time buys no time: the whole HELLO has to be there in time. */
static void who_drips_is_closed(void **state)
{
	static const uint8_t head[] = { 0, 0, 0, 0, 0, 0, 44, 0 };
	int fd;

	(void)state;
	fd = pipe_from("127.0.0.7");
	assert_waiting(1);
	for (unsigned int i = 0; i < 6; i++) {
		assert_int_equal(write(fd, &head[i], 1), 1);
		pass(800);
		assert_int_equal(here.reception.waiting.n, 1);
	}
	pass(200);
	assert_int_equal(here.reception.waiting.n, 0);
	assert_true(run_rounds(here.loop, "an end", has_ended, &fd));
}

static void so_many_in_all(void **state)
{
	char source[32];
	unsigned int i;
	int first;

	(void)state;
	if (sock_raise_limit() < 2 * PIPES + 100)
		skip();
	for (i = 0; i < RECEPTION_MAX; i++) {
		snprintf(source, sizeof(source), "127.0.0.%u", 7 + i % 16);
		pipe_from(source);
		run_round(here.loop);
	}
	first = here.pipe[0];
	assert_waiting(RECEPTION_MAX);
	assert_int_equal(ending(first), -EAGAIN);
	pipe_from("127.0.1.1");
	assert_true(run_rounds(here.loop, "the oldest", has_ended, &first));
	assert_waiting(RECEPTION_MAX);
}

/* How many were greeted before each round, until all were. */
static struct {
	struct task task;
	unsigned int n[GREETED + 2], rounds;
} seen;

static void look(struct task *t)
{
	assert_true(seen.rounds < GREETED + 2);
	seen.n[seen.rounds++] = here.n;
	if (here.n == GREETED)
		loop_stop(here.loop);
	else
		loop_after(here.loop, t);
}

static void run_until_greeted(void)
{
	seen.rounds = 0;
	loop_task_init(&seen.task, look);
	loop_after(here.loop, &seen.task);
	loop_run(here.loop);
}

/* With keys each of them is a handshake. */
static void a_round_reads_for_its_time(void **state)
{
	int fd[GREETED];

	(void)state;
	for (int i = 0; i < GREETED; i++)
		fd[i] = pipe_from("127.0.0.7");
	assert_waiting(GREETED);
	for (uint8_t i = 0; i < GREETED; i++)
		say_hello(fd[i], 0, 1, i);
	here.each = RECEPTION_TURN_US * NS_PER_US / 2;
	run_until_greeted();
	assert_int_equal(seen.rounds, 3);
	assert_int_equal(seen.n[1], 2);
	for (int i = 0; i < GREETED; i++)
		assert_int_equal(here.greeted[i].hello.session[0], i);
}

/* It is told of each part once. */
static void what_comes_in_parts_is_read(void **state)
{
	int first = pipe_from("127.0.0.7"), second = pipe_from("127.0.0.8");

	(void)state;
	assert_waiting(2);
	assert_int_equal(write(second, "", 1), 1);
	pass(20);
	assert_int_equal(here.reception.waiting.n, 2);
	say_hello(first, 0, 1, 1);
	assert_greeted(1);
	say_from(second, 1, 0, 1, 2);
	assert_greeted(2);
	assert_int_equal(here.greeted[1].hello.session[0], 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(who_says_hello_is_handed_on),
		TEST(two_behind_one_address),
		TEST(who_is_silent_is_closed),
		TEST(who_speaks_the_baseline_is_closed),
		TEST(who_leaves_is_forgotten),
		TEST(who_is_not_allowed_is_reset),
		TEST(so_many_of_one_address),
		TEST(who_has_said_it_stays),
		TEST(what_is_too_long_is_closed),
		TEST(who_drips_is_closed),
		TEST(so_many_in_all),
		TEST(a_round_reads_for_its_time),
		TEST(what_comes_in_parts_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
