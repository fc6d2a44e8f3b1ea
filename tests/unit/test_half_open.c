/* SPDX-License-Identifier: MIT */
/*
 * One direction of a connection has ended and the other goes on, as the extension
 * allows. The application may be gone: its machine answers that when it is asked.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "ext_pair.h"
#include "loopback.h"

static struct conn *only_conn(const struct session *s)
{
	return list_first(&s->conns, struct conn, member);
}

static int option(const struct session *s, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	getsockopt(only_conn(s)->watch.fd, level, name, &value, &size);
	return value;
}

/* Is the application of @s asked soon whether it is there, and given up soon? */
static bool is_asked(const struct session *s)
{
	int idle = option(s, IPPROTO_TCP, TCP_KEEPIDLE);
	int until = idle + option(s, IPPROTO_TCP, TCP_KEEPINTVL) *
		    option(s, IPPROTO_TCP, TCP_KEEPCNT);

	return option(s, SOL_SOCKET, SO_KEEPALIVE) && idle <= 10 && until <= 60;
}

static bool both_are_asked(void *arg)
{
	struct pair *pair = arg;

	return is_asked(pair->lp) && is_asked(pair->rp);
}

/* Not at once: most connections are half closed for a moment. */
static void wait_for_asking(struct pair *pair)
{
	assert_false(is_asked(pair->lp));
	assert_false(is_asked(pair->rp));
	assert_true(run_until(pair->engine.loop, "both applications to be asked",
			      both_are_asked, pair));
}

/* The one that ended, and the one that was told, which may go as well. */
static void who_ended_first_is_asked(void **state)
{
	struct pair *pair = *state;

	pair_connect(pair, 0);
	shutdown(pair->conn[0].client, SHUT_WR);
	pair_expect_end(pair, pair->conn[0].server, 0);
	wait_for_asking(pair);
}

static void a_server_that_ended_first_is_asked(void **state)
{
	struct pair *pair = *state;

	pair_connect(pair, 0);
	shutdown(pair->conn[0].server, SHUT_WR);
	pair_expect_end(pair, pair->conn[0].client, 0);
	wait_for_asking(pair);
}

/* Its machine forgets it after a second; and asks are a second apart, too. */
static void hurry(const struct session *s, int application)
{
	int fd = only_conn(s)->watch.fd, second = 1;

	setsockopt(application, IPPROTO_TCP, TCP_LINGER2, &second,
		   sizeof(second));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &second, sizeof(second));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &second, sizeof(second));
}

static bool is_told(void *arg)
{
	struct pair_conn *pc = arg;

	return send(pc->client >= 0 ? pc->client : pc->server, "?", 0,
		    MSG_NOSIGNAL) < 0;
}

static void close_one(int *fd)
{
	close(*fd);
	*fd = -1;
}

/* Nobody sends anything, so nobody would be told that there is no socket. */
static void who_ended_and_went_is_missed_by_asking(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair_connect(pair, 0);
	shutdown(pc->client, SHUT_WR);
	pair_expect_end(pair, pc->server, 0);
	wait_for_asking(pair);
	hurry(pair->lp, pc->client);
	close_one(&pc->client);
	assert_true(run_until(pair->engine.loop, "the server to be told",
			      is_told, pc));
	pair_at_rest(pair);
}

static void a_server_that_ended_and_went_is_missed_by_asking(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair_connect(pair, 0);
	shutdown(pc->server, SHUT_WR);
	pair_expect_end(pair, pc->client, 0);
	wait_for_asking(pair);
	hurry(pair->rp, pc->server);
	close_one(&pc->server);
	assert_true(run_until(pair->engine.loop, "the client to be told",
			      is_told, pc));
	pair_at_rest(pair);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_ended_first_is_asked),
		TEST(a_server_that_ended_first_is_asked),
		TEST(who_ended_and_went_is_missed_by_asking),
		TEST(a_server_that_ended_and_went_is_missed_by_asking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
