/* SPDX-License-Identifier: MIT */
/*
 * Flows of datagrams between two sessions whose pipes are joined back to back. What
 * has to do with time is tested with a clock that stands still.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/addr.h"
#include "mux/base/sock.h"
#include "mux/extension/datagrams.h"
#include "halted.h"
#include "loopback.h"
#include "sides.h"

enum { LARGEST = WIRE_PAYLOAD_MAX - 7 };

static const struct destination any = { .kind = DESTINATION_NONE };

/* While the clock stands: 300 ms, so that what was sent is acknowledged, too. */
static void rounds(struct pair *pair)
{
	for (int i = 0; i < 30; i++) {
		clock_pass(10 * NS_PER_MS);
		run_round(pair->engine.loop);
	}
}

static void goes_both_ways(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	sides_begin(pair, 0, &to);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"hello", 5);
	sides_expect(pair, &lp_side[0].came, 1);
	assert_int_equal(lp_side[0].len, 5);
	assert_memory_equal(lp_side[0].last, "hello", 5);
	assert_int_equal(lp_side[0].at.kind, DESTINATION_NONE);
	assert_int_equal(flow_to(rp_side[0].flow)->port, 7);
	flow_send(lp_side[0].flow, NULL, NULL, 0);
	sides_expect(pair, &lp_side[0].came, 2);
	assert_int_equal(lp_side[0].len, 0);
	assert_int_equal(pair->lp->counts.datagrams.sent, 2);
	assert_int_equal(pair->lp->counts.datagrams.received, 2);
	flow_close(lp_side[0].flow);
	sides_expect(pair, &rp_side[0].ended, 1);
	assert_int_equal(lp_side[0].ended, 0);
	pair_at_rest(pair);
}

/* For as long as a game or a call would send the next one. */
static void its_path_is_said_to_carry_datagrams(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	const struct passing *out = &pair->lp->paths.path[0].passing;
	const struct passing *in = &pair->rp->paths.path[0].passing;
	int64_t now;

	assert_false(passing_datagrams(out, loop_clock()));
	sides_begin(pair, 0, &to);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"hello", 5);
	sides_expect(pair, &lp_side[0].came, 1);
	now = loop_now(pair->engine.loop);
	assert_true(passing_datagrams(out, now));
	assert_true(passing_datagrams(in, now));
	assert_false(passing_datagrams(out, now + NS_PER_SEC));
	flow_close(lp_side[0].flow);
	sides_expect(pair, &rp_side[0].ended, 1);
	pair_at_rest(pair);
}

static void says_where_to_and_where_from(void **state)
{
	struct pair *pair = *state;
	struct destination to[3] = {
		sides_server(7), destination_name("x.example", 9, 53),
		destination_ipv6((uint8_t[16]){ 0x20, 1, [15] = 9 }, 9),
	};

	sides_begin(pair, 0, &any);
	for (unsigned int i = 0; i < 3; i++) {
		flow_send(lp_side[0].flow, &to[i], (const uint8_t *)&i, sizeof(i));
		sides_expect(pair, &lp_side[0].came, i + 1);
		assert_memory_equal(&rp_side[0].at, &to[i], sizeof(to[i]));
		assert_memory_equal(&lp_side[0].at, &to[i], sizeof(to[i]));
	}
	/* One without an address is nobody's here, and neither is the other. */
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"x", 1);
	sides_begin(pair, 1, &to[0]);
	flow_send(lp_side[1].flow, &to[0], (const uint8_t *)"x", 1);
	flow_send(lp_side[1].flow, NULL, (const uint8_t *)"y", 1);
	sides_expect(pair, &lp_side[1].came, 1);
	assert_int_equal(pair->rp->counts.datagrams.stray, 2);
	assert_int_equal(rp_side[0].came, 3);
}

/* The first datagram is worth most: a name server's client waits seconds for it. */
static void none_overtakes_its_open(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	sides_wait = true;
	sides_echo = false;
	for (int i = 0; i < SIDES; i++) {
		sides_begin(pair, i, &to);
		flow_send(lp_side[i].flow, NULL, (const uint8_t *)"1", 1);
		flow_send(lp_side[i].flow, NULL, (const uint8_t *)"2", 1);
	}
	for (int i = 0; i < SIDES; i++)
		sides_expect(pair, &rp_side[i].came, 2);
	assert_int_equal(pair->rp->counts.datagrams.stray, 0);
	for (int i = 0; i < SIDES; i++)
		flow_answer(rp_side[i].flow);
	for (int i = 0; i < SIDES; i++)
		flow_close(rp_side[i].flow);
	for (int i = 0; i < SIDES; i++)
		sides_expect(pair, &lp_side[i].ended, 1);
	pair_at_rest(pair);
}

/* What a flow put leaves before its end, which may come in the same round. */
static void what_was_put_leaves_before_the_end(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	struct pollfd p = { .events = POLLIN };
	uint8_t heard[16];
	socklen_t len;

	assert_int_equal(addr_parse("127.0.0.1:0", NULL, 0, &side_put.to, &len), 0);
	side_put.fd = sock_bound_udp(&side_put.to);
	assert_int_equal(sock_address(side_put.fd, &side_put.to), 0);
	p.fd = side_put.fd;
	sides_begin(pair, 0, &to);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"last", 4);
	sides_expect(pair, &lp_side[0].ended, 1);
	assert_int_equal(poll(&p, 1, 30000), 1);
	assert_int_equal(recv(side_put.fd, heard, sizeof(heard), 0), 4);
	assert_memory_equal(heard, "last", 4);
	assert_int_equal(pair->rp->counts.datagrams.unsent, 0);

	addr_set_port(&side_put.to, 0);	/* that is nowhere */
	sides_begin(pair, 1, &to);
	flow_send(lp_side[1].flow, NULL, (const uint8_t *)"lost", 4);
	sides_expect(pair, &lp_side[1].ended, 1);
	assert_int_equal(pair->rp->counts.datagrams.unsent, 1);
	assert_int_equal(side_put.unsent, 0);	/* it has ended by then */
	close(side_put.fd);
	pair_at_rest(pair);
}

static void is_refused_with_a_reason(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(PAIR_PORT);

	pair->refuse = CONN_END_DENIED;
	sides_begin(pair, 0, &to);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"x", 1);
	sides_expect(pair, &lp_side[0].ended, 1);
	assert_int_equal(sides_asked, 1);
	pair_at_rest(pair);
}

static void session_takes_its_flows_along(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	sides_begin(pair, 0, &to);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"x", 1);
	sides_expect(pair, &lp_side[0].came, 1);
	session_stop(pair->lp, "the test wants it");
	sides_expect(pair, &rp_side[0].ended, 1);
	assert_int_equal(lp_side[0].ended, 1);
}

static void large_one_is_dropped(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	uint8_t *bytes = calloc(1, 70000);

	sides_begin(pair, 0, &to);
	flow_send(lp_side[0].flow, NULL, bytes, LARGEST + 1);
	flow_send(lp_side[0].flow, NULL, bytes, 65507);
	flow_send(lp_side[0].flow, NULL, bytes, 69999);
	assert_int_equal(pair->lp->counts.datagrams.large, 3);
	flow_send(lp_side[0].flow, NULL, bytes, LARGEST);
	sides_expect(pair, &lp_side[0].came, 1);
	assert_int_equal(lp_side[0].len, LARGEST);
	free(bytes);
}

static void queue_has_newest_alone(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	sides_begin(pair, 0, &to);
	for (unsigned int i = 0; i < 100; i++)
		flow_send(lp_side[0].flow, NULL, (const uint8_t *)&i, sizeof(i));
	assert_int_equal(pair->lp->counts.datagrams.crowded,
			 100 - DATAGRAMS_MOST);
	sides_expect(pair, &rp_side[0].came, DATAGRAMS_MOST);
	assert_int_equal(rp_side[0].last[0], 99);
	assert_int_equal(pair->lp->ext->flows_bytes, 0);
}

static void all_queues_together_are_bounded(void **state)
{
	struct pair *pair = *state;
	uint8_t bytes[LARGEST] = { 0 };
	struct destination to = sides_server(7);
	size_t most = 0;

	for (int i = 0; i < SIDES; i++) {
		sides_begin(pair, i, &to);
		for (int n = 0; n < DATAGRAMS_MOST; n++)
			flow_send(lp_side[i].flow, NULL, bytes, sizeof(bytes));
		if (pair->lp->ext->flows_bytes > most)
			most = pair->lp->ext->flows_bytes;
	}
	assert_in_range(most, FLOWS_MEMORY,
			FLOWS_MEMORY + 2 * WIRE_MESSAGE_MAX);
	assert_true(pair->lp->counts.datagrams.crowded > 0);
}

static void old_one_is_not_sent(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	sides_begin(pair, 0, &to);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"x", 1);
	sides_expect(pair, &lp_side[0].came, 1);
	clock_halt();
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"old", 3);
	clock_pass(DATAGRAM_PATIENCE_MS * NS_PER_MS + 1);
	rounds(pair);
	assert_int_equal(pair->lp->counts.datagrams.stale, 1);
	assert_int_equal(lp_side[0].came, 1);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"new", 3);
	rounds(pair);
	assert_int_equal(lp_side[0].came, 2);
	assert_memory_equal(lp_side[0].last, "new", 3);
	clock_go_on();
}

static void idle_one_ends(void **state)
{
	struct pair *pair = *state;
	struct destination to[3] = { sides_server(53), sides_server(54), any };

	for (int i = 0; i < 3; i++)
		sides_begin(pair, i, &to[i]);
	flow_send(lp_side[2].flow, &to[0], (const uint8_t *)"x", 1);
	sides_expect(pair, &lp_side[2].came, 1);
	sides_expect(pair, &sides_asked, 3);
	clock_halt();
	clock_pass(9 * NS_PER_SEC);
	rounds(pair);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"x", 1);
	rounds(pair);
	assert_int_equal(lp_side[0].came, 1);
	clock_pass(2 * NS_PER_SEC);
	rounds(pair);
	/* The one of many destinations had asked a name server only. */
	assert_int_equal(lp_side[0].ended, 0);
	assert_int_equal(lp_side[1].ended, 0);
	assert_int_equal(lp_side[2].ended, 1);
	clock_pass(9 * NS_PER_SEC);
	rounds(pair);
	assert_int_equal(lp_side[0].ended, 1);
	clock_pass(97 * NS_PER_SEC);
	rounds(pair);
	assert_int_equal(lp_side[1].ended, 0);
	clock_pass(2 * NS_PER_SEC);
	rounds(pair);
	assert_int_equal(lp_side[1].ended, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rp_side[i].ended, 1);
	clock_go_on();
	pair_at_rest(pair);
}

/* A late datagram of the one before must not become the next one's. */
static void id_rests(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	uint16_t first;

	sides_begin(pair, 0, &to);
	first = flow_conn(lp_side[0].flow)->id;
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"x", 1);
	sides_expect(pair, &lp_side[0].came, 1);
	flow_close(lp_side[0].flow);
	pair_at_rest(pair);
	clock_halt();
	clock_pass((REST_SECONDS - 1) * NS_PER_SEC);
	rounds(pair);
	sides_begin(pair, 1, &to);
	assert_int_not_equal(flow_conn(lp_side[1].flow)->id, first);
	clock_pass(2 * NS_PER_SEC);
	rounds(pair);
	sides_begin(pair, 2, &to);
	assert_int_equal(flow_conn(lp_side[2].flow)->id, first);
	clock_go_on();
	flow_send(lp_side[2].flow, NULL, (const uint8_t *)"again", 5);
	sides_expect(pair, &lp_side[2].came, 1);
	assert_memory_equal(lp_side[2].last, "again", 5);
	assert_int_equal(lp_side[0].came, 1);
}

/*
 * All pipes full of a bulk: each datagram goes ahead of what is still to be sent. In a time of its
 * own: on a busy machine one could wait for its processor for longer than it is kept.
 */
static void goes_ahead_of_bulk(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	static uint8_t bytes[1 << 20];
	size_t written = 0;

	pair_connect(pair, 0);
	sides_begin(pair, 0, &to);
	clock_halt();
	for (unsigned int i = 0; i < 200; i++) {
		ssize_t n = write(pair->conn[0].client, bytes, sizeof(bytes));

		written += n > 0 ? (size_t)n : 0;
		flow_send(lp_side[0].flow, NULL, (const uint8_t *)&i, sizeof(i));
		sides_expect(pair, &lp_side[0].came, i + 1);
		assert_memory_equal(lp_side[0].last, &i, sizeof(i));
		while (read_some(pair->conn[0].server, bytes,
				 sizeof(bytes)) > 0)
			;
	}
	clock_go_on();
	assert_true(written > 10 * sizeof(bytes));
}

static void pipes_that_die_take_some_along(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	pair->redials = true;
	sides_begin(pair, 0, &to);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"x", 1);
	sides_expect(pair, &lp_side[0].came, 1);
	for (unsigned int i = 0; i < PAIR_PIPES; i++) {
		unsigned int before = lp_side[0].came;

		pair_kill(pair, i);
		pair_settle(pair);
		while (lp_side[0].came == before) {
			flow_send(lp_side[0].flow, NULL, (const uint8_t *)"y", 1);
			run_round(pair->engine.loop);
		}
	}
	assert_int_equal(lp_side[0].ended, 0);
}

static void not_where_rp_does_not(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	pair->settings.udp = false;
	sides_prepare(pair);
	pair_begin(pair, 1);
	assert_false(session_carries_flows(pair->lp));
	assert_false(session_carries_flows(pair->rp));
	assert_null(flow_open(pair->lp, &to, &side_ops, &lp_side[0]));
	assert_int_equal(pair->lp->ext->nflows, 0);
}

#define FLOW_TEST(f) \
	cmocka_unit_test_setup_teardown(f, sides_set_up, sides_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLOW_TEST(goes_both_ways),
		FLOW_TEST(its_path_is_said_to_carry_datagrams),
		FLOW_TEST(says_where_to_and_where_from),
		FLOW_TEST(none_overtakes_its_open),
		FLOW_TEST(is_refused_with_a_reason),
		FLOW_TEST(what_was_put_leaves_before_the_end),
		FLOW_TEST(session_takes_its_flows_along),
		FLOW_TEST(large_one_is_dropped),
		FLOW_TEST(queue_has_newest_alone),
		FLOW_TEST(all_queues_together_are_bounded),
		FLOW_TEST(old_one_is_not_sent),
		FLOW_TEST(idle_one_ends),
		FLOW_TEST(id_rests),
		FLOW_TEST(goes_ahead_of_bulk),
		FLOW_TEST(pipes_that_die_take_some_along),
		cmocka_unit_test_setup_teardown(not_where_rp_does_not,
						pair_setup_new, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
