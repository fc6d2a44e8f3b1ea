/* SPDX-License-Identifier: MIT */
/*
 * What time does to a session: half a minute passes at once, since the clock
 * that everything here reads is this file's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/conn/conn.h"
#include "loopback.h"
#include "peer.h"

enum { FIN = WIRE_REASON_FIN };

static int64_t ahead;	/* of the kernel's clock, in s */

int clock_gettime(clockid_t id, struct timespec *ts)
{
	long err = syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += ahead;
	return (int)err;
}

/* To the loop it looks as if it had been stopped: timers fire behind what came meanwhile. */
static void pass(struct peer *peer, int64_t seconds)
{
	ahead += seconds;
	run_round(peer->engine.loop);
	run_round(peer->engine.loop);
}

/* --- ids --- */

static void a_detached_connection_is_given_up_though_no_other_ends(void **state)
{
	struct peer *peer = *state;
	char byte;
	int old;

	peer_open_conn(peer, 1);
	old = dup(peer->conn[1].app);
	peer_syn(peer, 0, 1);
	peer_settle(peer);
	pass(peer, REST_SECONDS - 1);
	assert_int_equal(read_some(old, &byte, 1), -EAGAIN);
	pass(peer, 2);
	assert_int_equal(read_some(old, &byte, 1), -ECONNRESET);
	close(old);
	assert_int_equal(table_conns(peer->s->table), 1);
	peer_text(peer, 0, 1, 1, "the new one");
	peer_settle(peer);
	assert_app_reads(peer, 1, "the new one");
	assert_int_equal(peer->conn[1].fins, 0);
}

static void a_syn_that_comes_too_late_for_its_data_is_refused(void **state)
{
	struct peer *peer = *state;

	peer_text(peer, 0, 3, 1, "early");
	peer_settle(peer);
	pass(peer, REST_SECONDS - 1);
	assert_true(peer->s->in.early > 0);
	pass(peer, 2);
	assert_int_equal(peer->s->in.early, 0);
	assert_int_equal(peer->conn[3].fins, 0);	/* not before its SYN */
	peer_syn(peer, 1, 3);
	assert_reset(peer, 3);
	assert_int_equal(peer->conn[3].syns, 0);
}

/* Half a minute more, and who comes with that id is somebody else. */
static void data_that_never_get_a_syn_reach_no_successor(void **state)
{
	struct peer *peer = *state;

	peer_text(peer, 0, 3, 1, "stale");
	peer_text(peer, 1, 3, 2, "stale too");
	peer_settle(peer);
	pass(peer, REST_SECONDS + 1);
	pass(peer, REST_SECONDS + 1);
	assert_int_equal(table_conns(peer->s->table), 0);
	peer_syn(peer, 2, 3);
	for (uint32_t number = 1; number <= 2; number++)
		peer_text(peer, 2, 3, number, "new");
	peer_settle(peer);
	assert_int_equal(peer->conn[3].syns, 1);
	assert_app_reads(peer, 3, "newnew");
	assert_int_equal(peer->conn[3].fins, 0);
}

static void data_that_lay_in_a_paused_pipe_reach_no_successor(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 2);
	peer_fill_until_paused(peer);
	peer_text(peer, 1, 2, 2, "stale");	/* unread for now */
	shutdown(peer->conn[2].app, SHUT_WR);
	assert_true(peer_waits_for_fin(peer, 2));
	pass(peer, REST_SECONDS + 1);
	assert_true(peer_waits_for_fin(peer, 1));	/* the pause ended */
	assert_false(peer->s->in.paused);
	peer_settle(peer);
	assert_int_equal(peer->s->in.early, 0);
	peer_syn(peer, 2, 2);
	for (uint32_t number = 1; number <= 2; number++)
		peer_text(peer, 2, 2, number, "new");
	peer_settle(peer);
	assert_app_reads(peer, 2, "newnew");
}

static void resting_ids_say_when_they_are_free(void **state)
{
	struct destination to = destination_ipv4((uint8_t[]){ 192, 0, 2, 1 }, 80);
	struct peer *peer = *state;
	struct session *s = peer->s;

	for (int i = 0; i < WIRE_ID_LP_MAX; i++) {
		assert_int_equal(session_next_id_in(s), 0);
		assert_int_equal(session_open(s, sock_tcp(AF_INET), &to, NULL), 0);
		conn_abort(list_entry(s->conns.prev, struct conn, member),
			   CONN_END_LIMIT);
		if (i % 100 == 0)
			run_round(peer->engine.loop);
	}
	assert_false(session_has_room(s));
	assert_in_range(session_next_id_in(s), 20 * NS_PER_SEC,
			REST_SECONDS * NS_PER_SEC);
	pass(peer, REST_SECONDS / 2);
	assert_in_range(session_next_id_in(s), 5 * NS_PER_SEC,
			REST_SECONDS / 2 * NS_PER_SEC);
	pass(peer, REST_SECONDS / 2 + 1);
	assert_int_equal(session_next_id_in(s), 0);
	assert_true(session_has_room(s));
}

/* --- gaps --- */

static void a_gap_never_filled_ends_its_connection_alone(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	peer_open_conn(peer, 2);
	peer_text(peer, 1, 1, 3, "3");
	peer_text(peer, 2, 1, 4, "4");
	peer_settle(peer);
	pass(peer, GAP_SECONDS - 1);
	assert_int_equal(peer->conn[1].fins, 0);
	peer_text(peer, 0, 2, 2, "other");
	peer_settle(peer);
	assert_app_reads(peer, 2, "other");
	pass(peer, 2);
	assert_reset(peer, 1);
	assert_int_equal(peer->s->in.early, 0);
	assert_int_equal(peer->s->counts.gap_limit, 1);
	peer_text(peer, 1, 2, 3, "alive");
	peer_settle(peer);
	assert_app_reads(peer, 2, "alive");
	assert_int_equal(peer->conn[2].fins, 0);
}

/* Each message that was missing and comes begins the time anew. */
static void a_gap_that_moves_is_another_gap(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	peer_text(peer, 1, 1, 3, "3");
	peer_text(peer, 1, 1, 5, "5");
	peer_settle(peer);
	pass(peer, GAP_SECONDS - 1);
	peer_text(peer, 2, 1, 2, "2");
	peer_settle(peer);
	assert_app_reads(peer, 1, "23");
	pass(peer, GAP_SECONDS - 1);
	assert_int_equal(peer->conn[1].fins, 0);
	peer_text(peer, 2, 1, 4, "4");
	peer_settle(peer);
	assert_app_reads(peer, 1, "45");
	pass(peer, GAP_SECONDS + 1);	/* nothing is missing any more */
	assert_int_equal(peer->conn[1].fins, 0);
	assert_int_equal(peer->s->counts.gap_limit, 0);
}

/* What fills it may lie in a pipe that is not read because of another one. */
static void a_gap_does_not_age_while_pipes_pause(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 2);
	peer_text(peer, 1, 2, 3, "3");
	peer_settle(peer);
	pass(peer, GAP_SECONDS - 5);
	peer_fill_until_paused(peer);
	peer_text(peer, 1, 2, 2, "2");	/* unread for now */
	pass(peer, GAP_SECONDS);
	assert_true(peer_waits_for_fin(peer, 1));	/* the pause ended */
	peer_settle(peer);
	assert_app_reads(peer, 2, "23");
	assert_int_equal(peer->conn[2].fins, 0);
	assert_int_equal(peer->s->counts.gap_limit, 0);
}

/* --- a closed window --- */

struct closed {
	struct pipe *pipe;
	struct tcp_info info;
};

/* The peer answers each probe of its closed window; they get ever rarer. */
static bool probes_are_rare(void *arg)
{
	struct closed *closed = arg;
	socklen_t len = sizeof(closed->info);

	assert_int_equal(getsockopt(closed->pipe->fd, IPPROTO_TCP, TCP_INFO,
				    &closed->info, &len), 0);
	pipe_is_unheard(closed->pipe, loop_clock(), NS_PER_SEC);
	return closed->info.tcpi_unacked == 0 &&
		sock_outstanding(closed->pipe->fd) > 0 &&
		closed->info.tcpi_last_ack_recv > 300;
}

static void a_peer_that_reads_nothing_is_not_silent(void **state)
{
	static char bytes[1 << 16];
	struct peer *peer = *state;
	struct closed closed = { .pipe = peer->s->pipes[0] };
	size_t sent = 0;
	ssize_t n;

	/* All that the application can say, until pipe 0 is full of it. */
	peer_open_conn(peer, 1);
	do {
		n = send(peer->conn[1].app, bytes, sizeof(bytes), MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		for (int i = 0; i < 20; i++)
			run_round(peer->engine.loop);
		assert_true(sent < 256 << 20);
	} while (n > 0);
	assert_true(run_until(peer->engine.loop, "a probe to be long ago",
			      probes_are_rare, &closed));
	assert_false(pipe_is_unheard(closed.pipe, loop_clock(),
				     200 * NS_PER_MS));
}

/* --- orphans --- */

enum { WAITING = 8 << 20 };

/* As much waits for the application of @id as is asked for; then the FIN. */
static uint32_t upload(struct peer *peer, uint16_t id, size_t waiting)
{
	size_t before = peer->s->in.queued;
	uint32_t number = 2;

	peer_open_conn(peer, id);
	while (peer->s->in.queued < before + waiting) {
		for (int i = 0; i < 16; i++)
			peer_data(peer, 0, id, number++, WIRE_PAYLOAD_MAX);
		peer_settle(peer);
		assert_true(number < 20000);
	}
	peer_fin(peer, 0, id, number, FIN);
	peer_settle(peer);
	return number - 2;
}

static void end_session(struct peer *peer)
{
	shutdown(peer->fd[0], SHUT_WR);
	assert_true(peer_waits_for_end(peer));
}

struct slow_reader {
	int fd;
	size_t got;
	long end;	/* 1 before it */
};

static bool reads_to_the_end(void *arg)
{
	static char bytes[1 << 20];
	struct slow_reader *r = arg;
	long n;

	while ((n = read_some(r->fd, bytes, sizeof(bytes))) > 0)
		r->got += (size_t)n;
	r->end = n;
	return n != -EAGAIN;
}

static struct slow_reader read_all(struct peer *peer, uint16_t id)
{
	struct slow_reader r = { .fd = peer->conn[id].app, .end = 1 };

	assert_true(run_until(peer->engine.loop, "the application's end",
			      reads_to_the_end, &r));
	return r;
}

static bool no_orphan_is_left(void *arg)
{
	return list_empty(&((struct peer *)arg)->engine.orphans);
}

/* Each waits for its last acknowledgement. */
static void assert_orphans_end(struct peer *peer)
{
	assert_true(run_until(peer->engine.loop, "the last orphan's end",
			      no_orphan_is_left, peer));
	assert_int_equal(peer->engine.orphaned, 0);
}

static void what_ended_in_order_outlives_its_session(void **state)
{
	struct peer *peer = *state;
	uint32_t sent = upload(peer, 1, WAITING);
	struct slow_reader r;

	peer_open_conn(peer, 2);
	end_session(peer);
	assert_true(peer->engine.orphaned > WAITING / 2);
	pass(peer, ORPHAN_SECONDS - 1);
	r = read_all(peer, 1);
	assert_int_equal(r.end, 0);
	assert_int_equal(r.got, sent * (size_t)WIRE_PAYLOAD_MAX);
	assert_int_equal(read_all(peer, 2).end, -ECONNRESET);
	assert_orphans_end(peer);
}

static void who_does_not_read_it_in_time_is_reset(void **state)
{
	struct peer *peer = *state;

	upload(peer, 1, WAITING);
	end_session(peer);
	pass(peer, ORPHAN_SECONDS - 1);
	assert_false(list_empty(&peer->engine.orphans));
	pass(peer, 2);
	assert_true(list_empty(&peer->engine.orphans));
	assert_int_equal(peer->engine.orphaned, 0);
	assert_int_equal(read_all(peer, 1).end, -ECONNRESET);
}

static void more_of_it_than_may_wait_is_reset(void **state)
{
	enum { EACH = 15 << 20, CONNS = 5 };
	struct peer *peer = *state;
	int resets = 0;

	for (uint16_t id = 1; id <= CONNS; id++)
		upload(peer, id, EACH);
	assert_true(peer->s->in.queued > ORPHANS_MAX);
	end_session(peer);
	assert_true(peer->engine.orphaned <= ORPHANS_MAX);
	assert_true(peer->engine.orphaned > (CONNS - 2) * (size_t)EACH);
	for (uint16_t id = 1; id <= CONNS; id++)
		resets += read_all(peer, id).end == -ECONNRESET;
	assert_int_equal(resets, 1);
	assert_orphans_end(peer);
}

#define TIME_TEST(f) cmocka_unit_test_setup_teardown(f, peer_setup_rp, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIME_TEST(
			a_detached_connection_is_given_up_though_no_other_ends),
		TIME_TEST(a_syn_that_comes_too_late_for_its_data_is_refused),
		TIME_TEST(data_that_never_get_a_syn_reach_no_successor),
		TIME_TEST(data_that_lay_in_a_paused_pipe_reach_no_successor),
		TIME_TEST(resting_ids_say_when_they_are_free),
		TIME_TEST(a_gap_never_filled_ends_its_connection_alone),
		TIME_TEST(a_gap_that_moves_is_another_gap),
		TIME_TEST(a_gap_does_not_age_while_pipes_pause),
		TIME_TEST(a_peer_that_reads_nothing_is_not_silent),
		TIME_TEST(what_ended_in_order_outlives_its_session),
		TIME_TEST(who_does_not_read_it_in_time_is_reset),
		TIME_TEST(more_of_it_than_may_wait_is_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
