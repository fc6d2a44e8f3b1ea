/* SPDX-License-Identifier: MIT */
/*
 * A session against a peer that is played by hand: what malformed messages end,
 * what limits do, how ids come back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "loopback.h"
#include "peer.h"

enum { FIN = WIRE_REASON_FIN, RST = WIRE_REASON_RST };

static void assert_alive(struct peer *peer, uint16_t id, uint32_t number)
{
	peer_text(peer, 1, id, number, "alive");
	peer_settle(peer);
	assert_app_reads(peer, id, "alive");
	assert_int_equal(peer->conn[id].fins, 0);
}

/* --- order --- */

static void every_order_of_five_over_three_pipes(void **state)
{
	static const char *const part[] = { "", "one ", "two ", "three " };
	struct peer *peer = *state;

	for (uint16_t which = 0; which < 120; which++) {
		uint16_t id = (uint16_t)(1 + which % (PEER_IDS - 1));
		uint32_t left[5] = { 0, 1, 2, 3, 4 };
		uint16_t code = which;

		for (uint16_t n = 5; n > 0; code /= n, n--) {
			uint32_t number = left[code % n];
			unsigned int pipe = (number + which) % PEER_PIPES;

			left[code % n] = left[n - 1];
			if (number == 0)
				peer_syn(peer, pipe, id);
			else if (number == 4)
				peer_fin(peer, pipe, id, 4, FIN);
			else
				peer_text(peer, pipe, id, number, part[number]);
			peer_settle(peer);
		}
		assert_app_reads(peer, id, "one two three ");
		assert_app_reads(peer, id, "");
		assert_int_equal(peer->conn[id].messages, 0);
		assert_int_equal(peer->s->in.early, 0);
	}
	assert_int_equal(table_conns(peer->s->table), 0);
}

enum { FLOOD = 40000 };

/*
 * Single bytes as fast as they go over so many pipes: a round takes some thousand of them, and
 * then it is others' turn.
 */
static void flood_over(struct peer *peer, unsigned int pipes, uint32_t number)
{
	enum { SIZE = WIRE_HEADER + 1, ROUND = 4096 };
	const uint64_t most = ROUND + READER_LEAST / SIZE + 1;
	static uint8_t small[FLOOD * SIZE];
	size_t put[PEER_PIPES] = { 0 };
	uint64_t taken = 0;

	for (size_t at = 0; at < sizeof(small); at += SIZE)
		wire_put_data(small + at, 1, number, 1);
	while (taken < pipes * FLOOD) {
		for (unsigned int i = 0; i < pipes; i++) {
			ssize_t n = send(peer->fd[i], small + put[i],
					 sizeof(small) - put[i],
					 MSG_DONTWAIT | MSG_NOSIGNAL);

			if (n > 0)
				put[i] += (size_t)n;
		}
		peer->s->in.messages = 0;
		run_round(peer->engine.loop);
		assert_in_range(peer->s->in.messages, 0, most);
		taken += peer->s->in.messages;
	}
	assert_int_equal(taken, pipes * FLOOD);
}

static void small_messages_end_a_round(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	flood_over(peer, 1, 3);		/* 2 is missing */
	assert_int_equal(peer->s->counts.duplicates, FLOOD - 1);
}

/* Of a pipe that is not alone the next header is read first: no message, and nothing learnt. */
static void small_messages_of_two_pipes_do_too(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	flood_over(peer, 2, 1);		/* which came */
	assert_int_equal(peer->s->counts.duplicates, 2 * FLOOD);
}

/* --- malformed --- */

static void an_unknown_reason_ends_its_connection_alone(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	peer_open_conn(peer, 2);
	peer_fin(peer, 2, 1, 2, 0x77);
	assert_reset(peer, 1);
	assert_alive(peer, 2, 2);
	assert_int_equal(peer->s->counts.protocol, 1);
}

static void id_0_ends_nothing(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	peer_syn(peer, 0, 0);
	peer_data(peer, 0, 0, 1, 10);
	peer_fin(peer, 0, 0, 1, FIN);
	assert_alive(peer, 1, 2);
	assert_int_equal(peer->s->counts.protocol, 3);
}

static void put_syn_number_1(struct peer *peer, unsigned int pipe, uint16_t id)
{
	static const uint8_t addr[4] = { 192, 0, 2, 1 };
	uint8_t buf[WIRE_SYN_SIZE];

	wire_put_syn(buf, id, addr, 80);
	buf[2] = 1;
	assert_true(peer_put(peer, pipe, buf, sizeof(buf)));
}

static void a_syn_with_a_number_is_answered_by_0x99(void **state)
{
	struct peer *peer = *state;

	put_syn_number_1(peer, 0, 5);
	assert_reset(peer, 5);
	assert_int_equal(peer->conn[5].syns, 0);
}

static void a_syn_with_a_number_ends_the_live_connection(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	peer_open_conn(peer, 5);
	put_syn_number_1(peer, 1, 5);
	assert_reset(peer, 5);
	assert_alive(peer, 1, 2);
	assert_int_equal(table_conns(peer->s->table), 1);
}

static void a_number_too_far_ahead_ends_its_connection(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	peer_open_conn(peer, 2);
	peer_data(peer, 0, 1, 2 + WIRE_NUMBER_WINDOW, 1);
	peer_settle(peer);
	assert_int_equal(peer->conn[1].fins, 0);
	peer_data(peer, 0, 1, 3 + WIRE_NUMBER_WINDOW, 1);
	assert_reset(peer, 1);
	assert_int_equal(peer->s->in.early, 0);
	assert_alive(peer, 2, 2);
}

static void a_broken_length_ends_the_session(void **state)
{
	static const uint8_t message[] = { 2, 0, 7, 0, 0, 0, 8, 0 };
	struct peer *peer = *state;
	char byte;

	peer_open_conn(peer, 1);
	assert_true(peer_put(peer, 1, message, sizeof(message)));
	assert_true(peer_waits_for_end(peer));
	assert_non_null(strstr(peer->why, "pipe 1"));
	assert_non_null(strstr(peer->why, "length 8"));
	assert_int_equal(read_some(peer->conn[1].app, &byte, 1), -ECONNRESET);
}

static void a_syn_downlink_resets_the_application(void **state)
{
	struct destination to = destination_ipv4((uint8_t[]){ 192, 0, 2, 1 }, 80);
	struct peer *peer = *state;
	int fd[2];

	app_pair(fd);
	peer->conn[1].app = fd[0];
	assert_int_equal(session_open(peer->s, fd[1], &to, NULL), 0);
	peer_settle(peer);
	assert_int_equal(peer->conn[1].messages, 1);
	peer_syn(peer, 0, 1);
	assert_reset(peer, 1);
	assert_int_equal(peer->s->counts.protocol, 1);
}

/* Whoever sends that thinks this is another session. */
static void an_id_never_opened_ends_the_session(void **state)
{
	struct destination to = destination_ipv4((uint8_t[]){ 192, 0, 2, 1 }, 80);
	struct peer *peer = *state;
	char byte;
	int fd[2];

	app_pair(fd);
	peer->conn[1].app = fd[0];
	assert_int_equal(session_open(peer->s, fd[1], &to, NULL), 0);
	peer_settle(peer);
	peer_text(peer, 1, 2, 0, "somebody else's");
	assert_true(peer_waits_for_end(peer));
	assert_non_null(strstr(peer->why, "connection 2, which was never"));
	assert_int_equal(read_some(fd[0], &byte, 1), -ECONNRESET);
}

static void an_id_that_is_over_ends_nothing(void **state)
{
	struct destination to = destination_ipv4((uint8_t[]){ 192, 0, 2, 1 }, 80);
	struct peer *peer = *state;
	int fd[2];

	app_pair(fd);
	assert_int_equal(session_open(peer->s, fd[1], &to, NULL), 0);
	close(fd[0]);
	assert_true(peer_waits_for_fin(peer, 1));
	peer_text(peer, 1, 1, 0, "late");
	peer_settle(peer);
	assert_non_null(peer->s);
}

/* --- pipes --- */

static void a_pipe_that_ends_ends_the_session(void **state)
{
	struct peer *peer = *state;
	char byte;

	peer_open_conn(peer, 1);
	shutdown(peer->fd[2], SHUT_WR);
	assert_true(peer_waits_for_end(peer));
	assert_non_null(strstr(peer->why, "pipe 2"));
	assert_int_equal(read_some(peer->conn[1].app, &byte, 1), -ECONNRESET);
	for (int i = 0; i < PEER_PIPES; i++)
		assert_true(read_some(peer->fd[i], &byte, 1) <= 0);
}

/* --- limits --- */

static void out_of_order_is_bounded_and_the_largest_holder_pays(void **state)
{
	struct peer *peer = *state;
	uint32_t number = 3;

	peer_open_conn(peer, 1);
	peer_open_conn(peer, 2);
	peer_data(peer, 0, 2, 3, 1000);
	peer_settle(peer);
	while (!peer->conn[1].fins) {
		for (int i = 0; i < 100; i++, number++)
			peer_data(peer, number % PEER_PIPES, 1, number,
				  WIRE_PAYLOAD_MAX);
		peer_settle(peer);
		assert_true(peer->s->in.early <= REORDER_MAX_SESSION);
		assert_true(number < 20000);
	}
	assert_true(number > 15000);	/* 64 MiB are as good as used */
	assert_reset(peer, 1);
	assert_int_equal(peer->s->counts.reorder_limit, 1);
	assert_int_equal(peer->s->counts.pauses, 0);
	assert_int_equal(peer->conn[2].fins, 0);
	peer_text(peer, 0, 2, 2, "gap");
	peer_settle(peer);
	assert_int_equal(peer->s->in.early, 0);
}

static void early_data_is_bounded_and_its_syn_refused(void **state)
{
	struct peer *peer = *state;

	for (uint32_t number = 1; number <= EARLY_MAX / WIRE_PAYLOAD_MAX;
	     number++)
		peer_data(peer, 0, 1, number, WIRE_PAYLOAD_MAX);
	peer_settle(peer);
	assert_int_equal(peer->s->counts.early_dropped, 0);
	peer_data(peer, 0, 1, EARLY_MAX / WIRE_PAYLOAD_MAX + 1, 1);
	peer_settle(peer);
	assert_int_equal(peer->s->counts.early_dropped, 1);
	assert_int_equal(peer->s->in.early, 0);
	assert_int_equal(peer->conn[1].fins, 0);	/* not before its SYN */
	peer_syn(peer, 1, 1);
	assert_reset(peer, 1);
	assert_int_equal(peer->conn[1].syns, 0);
}

static void early_data_within_the_limit_waits_for_its_syn(void **state)
{
	struct peer *peer = *state;

	peer_text(peer, 2, 3, 2, "late");
	peer_text(peer, 1, 3, 1, "never ");
	peer_settle(peer);
	assert_int_equal(peer->conn[3].syns, 0);
	peer_syn(peer, 0, 3);
	peer_settle(peer);
	assert_app_reads(peer, 3, "never late");
}

static bool one_is_left(void *arg)
{
	return ((struct peer *)arg)->s->nconns == 1;
}

static void more_connections_than_allowed_are_refused(void **state)
{
	struct peer *peer = *state;

	peer->settings.max_conns = 2;
	peer_open(peer, true);
	peer_open_conn(peer, 1);
	peer_open_conn(peer, 2);
	assert_int_equal(peer->engine.incidents.count[INCIDENT_CONNECTIONS], 0);
	peer_syn(peer, 0, 3);
	assert_reset(peer, 3);
	assert_int_equal(peer->engine.incidents.count[INCIDENT_CONNECTIONS], 1);
	peer_fin(peer, 0, 1, 2, FIN);
	/* It lingers until its application's end acknowledged the FIN. */
	assert_true(run_until(peer->engine.loop, "the first to go", one_is_left,
			      peer));
	peer_open_conn(peer, 4);
	assert_alive(peer, 2, 2);
}

static uint16_t first_that_holds(const struct session *s)
{
	return list_first(&s->conn_owner.sockets, struct conn, place)->id;
}

/* For want of descriptors; those whose end waits for a pipe are not looked at again. */
static void the_oldest_are_given_up_one_after_the_other(void **state)
{
	struct peer *peer = *state;
	uint16_t id;

	peer_open(peer, true);
	for (id = 1; id <= 4; id++)
		peer_open_conn(peer, id);
	for (id = 1; id <= 3; id++) {
		assert_int_equal(first_that_holds(peer->s), id);
		assert_true(session_gives_up(peer->s));
	}
	assert_int_equal(peer->s->nconns, 4);
	for (id = 1; id <= 3; id++)
		assert_reset(peer, id);
	assert_alive(peer, 4, 2);
	assert_true(session_gives_up(peer->s));
	assert_false(session_gives_up(peer->s));
	assert_reset(peer, 4);
}

static void who_takes_nothing_pauses_the_pipes_and_then_is_reset(void **state)
{
	struct peer *peer = *state;
	int64_t began;

	peer_open_conn(peer, 2);
	began = loop_clock();
	peer_fill_until_paused(peer);
	peer_text(peer, 1, 2, 2, "behind the stop");
	assert_true(peer_waits_for_fin(peer, 1));
	assert_int_equal(peer->conn[1].reason, RST);
	assert_true(loop_clock() - began >= PAUSE_MS * NS_PER_MS);
	assert_int_equal(peer->s->counts.queue_limit, 1);
	assert_int_equal(peer->s->in.queued, 0);
	assert_false(peer->s->in.paused);
	for (int i = 0; i < 100; i++)
		run_round(peer->engine.loop);
	assert_app_reads(peer, 2, "behind the stop");
}

struct reading {
	struct peer *peer;
	int64_t began, next;
	size_t got;
};

/* A little now and then for longer than the patience lasts; then all. */
static bool resumed_by_reading(void *arg)
{
	static char buf[1 << 20];
	struct reading *r = arg;
	int64_t now = loop_clock();
	bool hurry = now > r->began + PAUSE_MS * NS_PER_MS + NS_PER_SEC / 2;
	long n;

	if (now < r->next && !hurry)
		return false;
	r->next = now + 200 * NS_PER_MS;
	n = read_some(r->peer->conn[1].app, buf,
		      hurry ? sizeof(buf) : 128 * 1024);
	r->got += n > 0 ? (size_t)n : 0;
	return !r->peer->s->in.paused;
}

static void a_slow_reader_is_waited_for(void **state)
{
	struct peer *peer = *state;
	struct reading r = { .peer = peer };

	peer_fill_until_paused(peer);
	r.began = loop_clock();
	assert_true(run_until(peer->engine.loop, "pipes to go on",
			      resumed_by_reading, &r));
	assert_true(loop_clock() > r.began + PAUSE_MS * NS_PER_MS);
	assert_int_equal(peer->conn[1].fins, 0);
	assert_int_equal(peer->s->counts.queue_limit, 0);
	assert_true(peer->s->counts.pauses >= 1);
}

/* --- ids that come back --- */

static void what_comes_late_for_a_closed_id_is_dropped(void **state)
{
	struct peer *peer = *state;

	peer_open_conn(peer, 1);
	shutdown(peer->conn[1].app, SHUT_WR);
	assert_true(peer_waits_for_fin(peer, 1));
	assert_int_equal(peer->conn[1].reason, FIN);
	peer_data(peer, 2, 1, 2, 100);
	peer_fin(peer, 1, 1, 3, FIN);
	peer_settle(peer);
	assert_int_equal(peer->conn[1].fins, 1);
	assert_int_equal(peer->s->in.early, 0);
	assert_int_equal(table_conns(peer->s->table), 0);
}

static void a_syn_for_a_live_id_starts_anew_beside_it(void **state)
{
	struct peer *peer = *state;
	int old;
	char got[16] = "";

	peer_open_conn(peer, 1);
	old = dup(peer->conn[1].app);
	/* The old one's last data and FIN are slow, on pipe 2. */
	peer_syn(peer, 0, 1);
	peer_text(peer, 0, 1, 1, "new");
	peer_settle(peer);
	assert_int_equal(peer->conn[1].syns, 2);
	assert_app_reads(peer, 1, "new");
	peer_text(peer, 2, 1, 2, "old");
	peer_fin(peer, 2, 1, 3, FIN);
	peer_settle(peer);
	assert_int_equal(read_some(old, got, sizeof(got)), 3);
	assert_string_equal(got, "old");
	assert_int_equal(read_some(old, got, sizeof(got)), 0);
	close(old);
	peer_text(peer, 1, 1, 2, "more");
	peer_settle(peer);
	assert_app_reads(peer, 1, "more");
	assert_int_equal(peer->conn[1].fins, 0);
}

#define SESSION_TEST(f, how) \
	cmocka_unit_test_setup_teardown(f, peer_setup##how, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(every_order_of_five_over_three_pipes, _rp),
		SESSION_TEST(small_messages_end_a_round, _rp),
		SESSION_TEST(small_messages_of_two_pipes_do_too, _rp),
		SESSION_TEST(an_unknown_reason_ends_its_connection_alone, _rp),
		SESSION_TEST(id_0_ends_nothing, _rp),
		SESSION_TEST(a_syn_with_a_number_is_answered_by_0x99, _rp),
		SESSION_TEST(a_syn_with_a_number_ends_the_live_connection, _rp),
		SESSION_TEST(a_number_too_far_ahead_ends_its_connection, _rp),
		SESSION_TEST(a_broken_length_ends_the_session, _rp),
		SESSION_TEST(a_syn_downlink_resets_the_application, _lp),
		SESSION_TEST(an_id_never_opened_ends_the_session, _lp),
		SESSION_TEST(an_id_that_is_over_ends_nothing, _lp),
		SESSION_TEST(a_pipe_that_ends_ends_the_session, _rp),
		SESSION_TEST(
			out_of_order_is_bounded_and_the_largest_holder_pays,
			_rp),
		SESSION_TEST(early_data_is_bounded_and_its_syn_refused, _rp),
		SESSION_TEST(early_data_within_the_limit_waits_for_its_syn,
			     _rp),
		SESSION_TEST(more_connections_than_allowed_are_refused, ),
		SESSION_TEST(the_oldest_are_given_up_one_after_the_other, ),
		SESSION_TEST(
			who_takes_nothing_pauses_the_pipes_and_then_is_reset,
			_rp),
		SESSION_TEST(a_slow_reader_is_waited_for, _rp),
		SESSION_TEST(what_comes_late_for_a_closed_id_is_dropped, _rp),
		SESSION_TEST(a_syn_for_a_live_id_starts_anew_beside_it, _rp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
