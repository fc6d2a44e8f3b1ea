/* SPDX-License-Identifier: MIT */
/*
 * A listener with real connections over loopback.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "mux/base/addr.h"
#include "mux/base/listener.h"
#include "mux/base/log.h"
#include "mux/base/sock.h"
#include "halted.h"
#include "loopback.h"

enum { ACCEPTED_MAX = 4 * LISTENER_BATCH };

static struct {
	struct loop *loop;
	struct log log;
	struct listener *listener;
	uint16_t port;
	int accepted[ACCEPTED_MAX];
	uint16_t peer_port[ACCEPTED_MAX];
	unsigned int n;
	unsigned int pause_after;	/* so many; 0 never */
	int64_t each;		/* ns that one takes, while the clock stands */
} scene;

static void accepted(struct listener *l, int fd,
		     const struct sockaddr_storage *peer)
{
	const struct sockaddr_in *in = (const void *)peer;

	assert_ptr_equal(listener_owner(l), &scene);
	assert_true(scene.n < ACCEPTED_MAX);
	assert_int_equal(in->sin_family, AF_INET);
	scene.peer_port[scene.n] = ntohs(in->sin_port);
	scene.accepted[scene.n++] = fd;
	if (scene.n == scene.pause_after)
		listener_pause(l, true);
	if (scene.each)
		clock_pass(scene.each);
}

static int set_up(void **state)
{
	const struct sockaddr_in *in;
	struct sockaddr_storage addr;
	socklen_t len;

	(void)state;
	memset(&scene, 0, sizeof(scene));
	log_init(&scene.log, "test", LOG_DEBUG);
	scene.loop = loop_new();
	assert_non_null(scene.loop);
	assert_int_equal(addr_parse("127.0.0.1:0", NULL, 0, &addr, &len), 0);
	scene.listener = listener_new(scene.loop, &scene.log, sock_tcp(AF_INET),
				      &addr, len, accepted, &scene);
	assert_non_null(scene.listener);
	in = (const void *)listener_addr(scene.listener);
	scene.port = ntohs(in->sin_port);
	assert_true(scene.port != 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	listener_free(scene.listener);
	while (scene.n)
		close(scene.accepted[--scene.n]);
	loop_free(scene.loop);
	return 0;
}

static bool as_many(void *arg)
{
	return scene.n == *(const unsigned int *)arg;
}

static void assert_accepted(unsigned int n)
{
	assert_true(run_until(scene.loop, "connections", as_many, &n));
}

static void connections_come_with_their_peer(void **state)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int fd = tcp_connect(scene.port);

	(void)state;
	assert_accepted(1);
	assert_int_equal(getsockname(fd, (void *)&in, &len), 0);
	assert_int_equal(scene.peer_port[0], ntohs(in.sin_port));
	close(fd);
}

static void an_address_that_is_taken(void **state)
{
	struct sockaddr_storage addr = *listener_addr(scene.listener);

	(void)state;
	assert_null(listener_new(scene.loop, &scene.log, sock_tcp(AF_INET),
				 &addr, sizeof(struct sockaddr_in), accepted,
				 &scene));
	assert_int_equal(errno, EADDRINUSE);
	assert_null(listener_new(scene.loop, &scene.log, -EMFILE, &addr,
				 sizeof(struct sockaddr_in), accepted,
				 &scene));
	assert_int_equal(errno, EMFILE);
}

/* Others have their turn after each batch. */
static void one_round_accepts_one_batch(void **state)
{
	int fd[LISTENER_BATCH + 10];
	size_t i, n = sizeof(fd) / sizeof(*fd);

	(void)state;
	for (i = 0; i < n; i++)
		fd[i] = tcp_connect(scene.port);
	clock_halt();
	run_round(scene.loop);
	clock_go_on();
	assert_int_equal(scene.n, LISTENER_BATCH);
	assert_accepted((unsigned int)n);
	for (i = 0; i < n; i++)
		close(fd[i]);
}

/* Whatever is done with each of them. */
static void one_round_accepts_for_its_time(void **state)
{
	int fd[10];

	(void)state;
	for (int i = 0; i < 10; i++)
		fd[i] = tcp_connect(scene.port);
	scene.each = LISTENER_TURN_US * NS_PER_US / 4;
	clock_halt();
	run_round(scene.loop);
	assert_int_equal(scene.n, 4);
	run_round(scene.loop);
	assert_int_equal(scene.n, 8);
	clock_go_on();
	scene.each = 0;
	assert_accepted(10);
	for (int i = 0; i < 10; i++)
		close(fd[i]);
}

static void paused_it_accepts_nobody(void **state)
{
	int first, second;

	(void)state;
	scene.pause_after = 1;
	first = tcp_connect(scene.port);
	second = tcp_connect(scene.port);
	assert_accepted(1);
	assert_true(loop_load(scene.loop, 100) < 50);
	assert_int_equal(scene.n, 1);
	listener_pause(scene.listener, false);
	assert_accepted(2);
	close(first);
	close(second);
}

static bool is_short(void *arg)
{
	(void)arg;
	return listener_is_short(scene.listener);
}

static void limit_descriptors(rlim_t n)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* It waits instead of spinning, and goes on when there are some again. */
static void out_of_descriptors_it_waits(void **state)
{
	struct rlimit before;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	fd = tcp_connect(scene.port);
	limit_descriptors((rlim_t)fd + 1);
	assert_true(run_until(scene.loop, "no descriptors", is_short, NULL));
	assert_true(loop_load(scene.loop, 200) < 50);
	/* It tries again in between. */
	assert_true(loop_load(scene.loop, 2 * LISTENER_BACKOFF_MS) < 50);
	assert_int_equal(scene.n, 0);
	limit_descriptors(before.rlim_cur);
	assert_accepted(1);
	assert_false(listener_is_short(scene.listener));
	close(fd);
}

/* A pause that ends during a shortage does not end the shortage. */
static void a_pause_and_a_shortage_at_once(void **state)
{
	struct rlimit before;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	fd = tcp_connect(scene.port);
	limit_descriptors((rlim_t)fd + 1);
	assert_true(run_until(scene.loop, "no descriptors", is_short, NULL));
	limit_descriptors(before.rlim_cur);
	listener_pause(scene.listener, true);
	loop_load(scene.loop, 2 * LISTENER_BACKOFF_MS);
	assert_int_equal(scene.n, 0);
	listener_pause(scene.listener, false);
	assert_accepted(1);
	close(fd);
}

struct expectation {
	int fd;
	long got;
};

static bool has_ended(void *arg)
{
	struct expectation *e = arg;
	char byte;

	e->got = read_some(e->fd, &byte, 1);
	return e->got != -EAGAIN;
}

static long ending_of_a_closed_one(void)
{
	struct expectation e = { .fd = tcp_connect(scene.port) };

	assert_accepted(1);
	close(scene.accepted[--scene.n]);
	assert_true(run_until(scene.loop, "an end", has_ended, &e));
	close(e.fd);
	return e.got;
}

static void each_is_prepared_on_request(void **state)
{
	(void)state;
	assert_int_equal(ending_of_a_closed_one(), 0);
	listener_prepares(scene.listener, sock_arm_reset);
	assert_int_equal(ending_of_a_closed_one(), -ECONNRESET);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connections_come_with_their_peer),
		TEST(an_address_that_is_taken),
		TEST(one_round_accepts_one_batch),
		TEST(one_round_accepts_for_its_time),
		TEST(paused_it_accepts_nobody),
		TEST(out_of_descriptors_it_waits),
		TEST(a_pause_and_a_shortage_at_once),
		TEST(each_is_prepared_on_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
