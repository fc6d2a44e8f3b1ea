/* SPDX-License-Identifier: MIT */
/* What RP accepts for LP: LISTEN, LISTENING, and connections that RP opens. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "ext_hand.h"
#include "ext_pair.h"
#include "loopback.h"

enum { FIRST = WIRE_ID_LP_MAX + 1, LISTENER = 3 };

static struct destination at;

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL),
			 strlen(text));
}

static void hears(struct pair *pair, int fd, const char *text)
{
	pair_expect(pair, fd, text, strlen(text));
}

static int begin(void **state)
{
	struct pair *pair;

	at = destination_ipv4((uint8_t[]){ 127, 0, 0, 1 }, 8080);
	pair_setup_new(state);
	pair = *state;
	pair->reverses = true;
	pair_begin(pair, PAIR_PIPES);
	return 0;
}

static bool has_heard(void *arg)
{
	return ((struct pair *)arg)->heard > 0;
}

static bool has_opened(void *arg)
{
	return ((struct pair *)arg)->conn[0].opened > 0;
}

static bool has_answer(void *arg)
{
	return ((struct pair *)arg)->conn[0].answered > 0;
}

static void waits(struct pair *pair, const char *what, bool (*done)(void *))
{
	assert_true(run_until(pair->engine.loop, what, done, pair));
}

/* --- LISTEN and LISTENING --- */

static void rp_is_asked_and_answers(void **state)
{
	struct pair *pair = *state;

	assert_true(session_reverses(pair->lp));
	assert_true(session_reverses(pair->rp));
	session_listen(pair->lp, LISTENER, &at);
	waits(pair, "LISTENING", has_heard);
	assert_int_equal(pair->asked, 1);
	assert_int_equal(pair->listen_at.port, 8080);
	assert_int_equal(pair->listener, LISTENER);
	assert_int_equal(pair->listening, WIRE_LISTENING_YES);
	assert_int_equal(pair->port, PAIR_PORT);
	pair_at_rest(pair);
}

static void a_refusal_is_told_and_may_be_asked_again(void **state)
{
	struct pair *pair = *state;

	pair->says = WIRE_LISTENING_IN_USE;
	session_listen(pair->lp, 0, &at);
	waits(pair, "LISTENING", has_heard);
	assert_int_equal(pair->listening, WIRE_LISTENING_IN_USE);
	pair->says = WIRE_LISTENING_YES;
	pair->heard = 0;
	session_listen(pair->lp, 0, &at);
	waits(pair, "LISTENING", has_heard);
	assert_int_equal(pair->listening, WIRE_LISTENING_YES);
	assert_int_equal(pair->asked, 2);
}

static void each_of_many_is_answered(void **state)
{
	struct pair *pair = *state;
	uint16_t i;

	for (i = 0; i < LISTENERS_MAX; i++)
		session_listen(pair->lp, i, &at);
	while (pair->heard < LISTENERS_MAX)
		run_round(pair->engine.loop);
	assert_int_equal(pair->asked, LISTENERS_MAX);
}

static void a_name_is_no_address_to_listen_on(void **state)
{
	struct pair *pair = *state;

	at = destination_name("example.org", 11, 8080);
	session_listen(pair->lp, 1, &at);
	waits(pair, "LISTENING", has_heard);
	assert_int_equal(pair->listening, WIRE_LISTENING_FAILED);
	assert_int_equal(pair->asked, 0);
}

static void it_outlives_the_pipe_it_was_said_on(void **state)
{
	struct pair *pair = *state;
	unsigned int i;

	pair->redials = true;
	session_listen(pair->lp, 2, &at);
	for (i = 0; i < PAIR_PIPES; i++)
		pair_kill(pair, i);
	waits(pair, "LISTENING", has_heard);
	assert_int_equal(pair->listening, WIRE_LISTENING_YES);
	pair_settle(pair);
}

/* --- connections --- */

static void connections_go_to_lp(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];
	struct destination peer;

	assert_int_equal(pair_accept(pair, 0, LISTENER), 0);
	say(pc->server, "who came");
	waits(pair, "OPEN", has_opened);
	assert_true(destination_is_listener(&pc->to));
	assert_int_equal(destination_listener_of(&pc->to), LISTENER);
	peer = destination_peer_of(&pc->to);
	assert_memory_equal(peer.bytes, ((uint8_t[]){ 192, 0, 2, 9 }), 4);
	hears(pair, pc->client, "who came");
	say(pc->client, "who was there");
	hears(pair, pc->server, "who was there");
	assert_non_null(pair->rp->ext->channel[FIRST]);
	shutdown(pc->server, SHUT_WR);
	pair_expect_end(pair, pc->client, 0);
	say(pc->client, "more");
	hears(pair, pc->server, "more");
	shutdown(pc->client, SHUT_WR);
	pair_expect_end(pair, pc->server, 0);
	assert_int_equal(pc->result, WIRE_SYNACK_CONNECTED);
	pair_at_rest(pair);
}

static void lp_may_refuse_them(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair->refuse = CONN_END_REFUSED;
	assert_int_equal(pair_accept(pair, 0, LISTENER), 0);
	say(pc->server, "for nobody");
	waits(pair, "SYNACK", has_answer);
	assert_int_equal(pc->result, WIRE_SYNACK_REFUSED);
	pair_expect_end(pair, pc->server, -ECONNRESET);
	pair_at_rest(pair);
}

/* Each end's half has its own, and its own uses. */
static void ids_are_used_again(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];
	int i;

	for (i = 0; i < 20; i++) {
		pc->opened = 0;
		assert_int_equal(pair_accept(pair, 0, LISTENER), 0);
		waits(pair, "OPEN", has_opened);
		close(pc->server);
		pair_expect_end(pair, pc->client, 0);
		close(pc->client);
		pair_at_rest(pair);
	}
	pc->client = pc->server = -1;
	assert_int_equal(pair->rp->ext->last_id, FIRST);
	assert_int_equal(pair->lp->ext->last_id, 0);
	pair_connect(pair, 1);
	assert_int_equal(pair->lp->ext->last_id, 1);
}

/* What RP sends early is not what LP may send early. */
static void both_ways_at_once(void **state)
{
	static uint8_t bulk[300000];
	struct pair *pair = *state;

	pair_connect(pair, 1);
	assert_int_equal(pair_accept(pair, 0, 0), 0);
	assert_int_equal(send(pair->conn[0].server, bulk, 100000, 0), 100000);
	assert_int_equal(send(pair->conn[1].client, bulk, 100000, 0), 100000);
	waits(pair, "OPEN", has_opened);
	pair_expect(pair, pair->conn[0].client, bulk, 100000);
	pair_expect(pair, pair->conn[1].server, bulk, 100000);
	assert_int_equal(pair->lp->counts.protocol, 0);
	assert_int_equal(pair->rp->counts.protocol, 0);
}

static void without_room_none_is_taken(void **state)
{
	struct pair *pair = *state;

	pair->settings.max_conns = 1;
	assert_int_equal(pair_accept(pair, 0, 0), 0);
	assert_int_equal(pair_accept(pair, 1, 0), -EAGAIN);
}

/* Who comes to RP's ports takes no place that LP needs: here, */
static void half_of_the_places_are_left_to_lp(void **state)
{
	struct pair *pair = *state;

	pair->settings.max_conns = 5;
	assert_int_equal(pair_accept(pair, 0, 0), 0);
	assert_int_equal(pair_accept(pair, 1, 0), 0);
	assert_int_equal(pair_accept(pair, 2, 0), 0);
	assert_int_equal(pair_accept(pair, 3, 0), -EAGAIN);
	pair_connect(pair, 4);
	pair_connect(pair, 5);
	assert_int_equal(pair->conn[5].opened, 1);
}

static bool has_second_answer(void *arg)
{
	return ((struct pair *)arg)->conn[1].answered > 0;
}

/* and where LP has fewer of them than RP. */
static void lp_keeps_half_of_its_own(void **state)
{
	struct pair *pair = *state;

	assert_int_equal(pair_accept(pair, 0, 0), 0);
	assert_int_equal(pair_accept(pair, 1, 0), 0);
	pair->settings.max_conns = 2;
	waits(pair, "SYNACK", has_second_answer);
	assert_int_equal(pair->conn[0].opened, 1);
	assert_int_equal(pair->conn[1].opened, 0);
	assert_int_equal(pair->conn[1].result, WIRE_SYNACK_LIMIT);
}

/* RP counts it when it is taken, and no longer when it moves from being open. */
static void one_that_cannot_be_watched_was_open(void **state)
{
	struct pair *pair = *state;
	struct sockaddr_storage peer = { .ss_family = AF_INET };
	int fd = open("/dev/null", O_RDONLY);

	assert_int_equal(session_accept(pair->rp, fd, 0, &peer), 0);
	assert_int_equal(pair->closed_from, CONN_OPEN);
	pair_at_rest(pair);
}

/* A place is free again when its connection is gone at both ends. */
static void places_come_back(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];
	int i;

	pair->settings.max_conns = 1;
	for (i = 0; i < 3; i++) {
		pc->opened = 0;
		assert_int_equal(pair_accept(pair, 0, LISTENER), 0);
		waits(pair, "OPEN", has_opened);
		close(pc->server);
		pair_expect_end(pair, pc->client, 0);
		close(pc->client);
		pair_at_rest(pair);
	}
	pc->client = pc->server = -1;
}

/* --- where it was not agreed upon --- */

static void rp_opens_nothing_unasked(void **state)
{
	struct pair *pair = *state;

	assert_false(session_reverses(pair->lp));
	assert_int_equal(pair_accept(pair, 0, 0), -EAGAIN);
}

static void lp_takes_nothing_unasked(void **state)
{
	struct hand h;
	struct destination peer = destination_ipv4((uint8_t[]){ 1, 2, 3, 4 }, 5);
	struct wire_ext open = {
		.type = WIRE_OPEN,
		.open = { .id = FIRST, .protocol = WIRE_PROTOCOL_TCP,
			  .to = destination_listener(0, &peer) },
	};

	(void)state;
	hand_begin(&h, true);
	hand_ext(&h, &open);
	ends_the_session(&h);
}

/* However badly it is made. */
static void lp_does_not_judge_what_it_takes_not(void **state)
{
	static const uint8_t of_no_kind[] = {
		WIRE_OPEN, 0x00, 0x80, WIRE_PROTOCOL_TCP, 9, 1, 'x', 80, 0, 0, 0, 1, 0,
	};
	struct hand h;

	(void)state;
	hand_begin(&h, true);
	hand_body(&h, of_no_kind, sizeof(of_no_kind));
	ends_the_session(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rp_is_asked_and_answers, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(a_refusal_is_told_and_may_be_asked_again, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(each_of_many_is_answered, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(a_name_is_no_address_to_listen_on, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(it_outlives_the_pipe_it_was_said_on, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(connections_go_to_lp, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(lp_may_refuse_them, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(ids_are_used_again, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(both_ways_at_once, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(without_room_none_is_taken, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(half_of_the_places_are_left_to_lp, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(lp_keeps_half_of_its_own, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(one_that_cannot_be_watched_was_open, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(places_come_back, begin, pair_teardown),
		cmocka_unit_test_setup_teardown(rp_opens_nothing_unasked, pair_setup, pair_teardown),
		cmocka_unit_test(lp_takes_nothing_unasked),
		cmocka_unit_test(lp_does_not_judge_what_it_takes_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
