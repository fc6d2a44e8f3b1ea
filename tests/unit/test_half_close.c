/* SPDX-License-Identifier: MIT */
/*
 * An application that ends first: where something was lost behind its end it
 * is reset, where nothing was it sees an orderly end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "loopback.h"
#include "peer.h"

enum { FIN = WIRE_REASON_FIN, RST = WIRE_REASON_RST };

static const struct destination somewhere = {
	DESTINATION_IPV4, 4, 80, { 192, 0, 2, 1 },
};

/* An application of LP's, which said something and then ended its side. */
static void open_and_end(struct peer *peer)
{
	int fd[2];

	app_pair(fd);
	peer->conn[1].app = fd[0];
	assert_int_equal(session_open(peer->s, fd[1], &somewhere, NULL), 0);
	assert_int_equal(send(fd[0], "request", 7, 0), 7);
	shutdown(fd[0], SHUT_WR);
	assert_true(peer_waits_for_fin(peer, 1));
	assert_int_equal(peer->conn[1].reason, FIN);
}

static long app_is_told(struct peer *peer)
{
	char byte;

	return read_some(peer->conn[1].app, &byte, 1);
}

static void an_answer_that_is_lost_is_no_orderly_end(void **state)
{
	struct peer *peer = *state;

	open_and_end(peer);
	assert_int_equal(app_is_told(peer), -EAGAIN);
	peer_text(peer, 1, 1, 0, "answer");
	peer_settle(peer);
	assert_int_equal(app_is_told(peer), -ECONNRESET);
}

static void a_reset_behind_the_end_is_one(void **state)
{
	struct peer *peer = *state;

	open_and_end(peer);
	peer_fin(peer, 1, 1, 0, RST);
	peer_settle(peer);
	assert_int_equal(app_is_told(peer), -ECONNRESET);
}

static void ends_that_cross_are_orderly(void **state)
{
	struct peer *peer = *state;

	open_and_end(peer);
	peer_fin(peer, 1, 1, 0, FIN);
	peer_settle(peer);
	assert_int_equal(app_is_told(peer), 0);
}

static bool app_was_told(void *arg)
{
	return app_is_told(arg) != -EAGAIN;
}

static void who_gets_no_answer_sees_an_orderly_end(void **state)
{
	struct peer *peer = *state;
	int64_t began = loop_clock();

	open_and_end(peer);
	assert_true(run_until(peer->engine.loop, "an end", app_was_told, peer));
	assert_true(loop_clock() - began >= UNANSWERED_MS * NS_PER_MS);
	assert_int_equal(app_is_told(peer), 0);
}

static void who_had_an_answer_does_not_wait_long(void **state)
{
	struct peer *peer = *state;
	int64_t began;
	int fd[2];

	app_pair(fd);
	peer->conn[1].app = fd[0];
	assert_int_equal(session_open(peer->s, fd[1], &somewhere, NULL), 0);
	assert_int_equal(send(fd[0], "request", 7, 0), 7);
	peer_settle(peer);
	peer_text(peer, 1, 1, 0, "answer");
	peer_settle(peer);
	assert_app_reads(peer, 1, "answer");
	began = loop_clock();
	shutdown(fd[0], SHUT_WR);
	assert_true(run_until(peer->engine.loop, "an end", app_was_told, peer));
	assert_true(loop_clock() - began < UNANSWERED_MS * NS_PER_MS);
	assert_int_equal(app_is_told(peer), 0);
}

static void a_server_that_answers_behind_the_end_is_told_of(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	peer_fin(peer, 1, 1, 2, FIN);
	peer_settle(peer);
	assert_int_equal(peer->conn[1].fins, 0);
	assert_int_equal(send(peer->conn[1].app, "answer", 6, 0), 6);
	assert_true(peer_waits_for_fin(peer, 1));
	assert_int_equal(peer->conn[1].reason, RST);
	assert_int_equal(peer->conn[1].messages, 1);
	peer_settle(peer);
	assert_int_equal(peer->conn[1].fins, 1);
}

/* Since then nothing was sent, so nobody looked at them again. */
static void it_is_told_of_on_pipes_that_were_full(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	peer_fin(peer, 1, 1, 2, FIN);
	peer_settle(peer);
	for (unsigned int i = 0; i < peer->s->paths.npipes; i++) {
		peer->s->paths.pipes[i]->info.unsent = 1 << 20;
		peer->s->paths.pipes[i]->idle.bytes = UINT64_MAX;
	}
	assert_int_equal(send(peer->conn[1].app, "answer", 6, 0), 6);
	assert_true(peer_waits_for_fin(peer, 1));
	assert_int_equal(peer->conn[1].reason, RST);
}

/* Its id has another owner by then, who must not be hit. */
static void an_answer_behind_the_end_does_not_hit_a_successor(void **state)
{
	struct peer *peer = *state;
	int server;

	peer_open_conn(peer, 1);
	server = dup(peer->conn[1].app);
	peer_fin(peer, 1, 1, 2, FIN);
	peer_settle(peer);
	peer_open_conn(peer, 1);
	assert_int_equal(send(server, "answer", 6, 0), 6);
	for (int i = 0; i < 100; i++)
		peer_settle(peer);
	assert_int_equal(peer->conn[1].fins, 0);
	peer_text(peer, 1, 1, 2, "alive");
	peer_settle(peer);
	assert_app_reads(peer, 1, "alive");
	close(server);
}

#define END_TEST(f, how) \
	cmocka_unit_test_setup_teardown(f, peer_setup##how, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		END_TEST(an_answer_that_is_lost_is_no_orderly_end, _lp),
		END_TEST(a_reset_behind_the_end_is_one, _lp),
		END_TEST(ends_that_cross_are_orderly, _lp),
		END_TEST(who_gets_no_answer_sees_an_orderly_end, _lp),
		END_TEST(who_had_an_answer_does_not_wait_long, _lp),
		END_TEST(a_server_that_answers_behind_the_end_is_told_of,
			     _rp),
		END_TEST(it_is_told_of_on_pipes_that_were_full, _rp),
		END_TEST(an_answer_behind_the_end_does_not_hit_a_successor,
			     _rp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
