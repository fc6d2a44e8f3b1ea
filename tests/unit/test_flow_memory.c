/* SPDX-License-Identifier: MIT */
/*
 * What flows of datagrams hold: that it is in the account of all memory, and what becomes
 * of it when that is short; and which of them goes where descriptors are. RP's end of each
 * flow sends back what comes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/extension/datagrams.h"
#include "loopback.h"
#include "sides.h"

enum { LARGEST = WIRE_PAYLOAD_MAX - 7 };

static void begin(struct pair *pair, int i)
{
	struct destination to = sides_server(7);

	sides_begin(pair, i, &to);
}

static void fill(struct pair *pair, int i)
{
	static const uint8_t bytes[LARGEST];

	begin(pair, i);
	for (int n = 0; n < DATAGRAMS_MOST; n++)
		flow_send(lp_side[i].flow, NULL, bytes, sizeof(bytes));
}

static void queues_are_in_the_account(void **state)
{
	struct pair *pair = *state;
	size_t before;

	begin(pair, 0);
	before = pair->engine.hoard.bytes;
	fill(pair, 1);
	assert_in_range(pair->engine.hoard.bytes - before,
			DATAGRAMS_MOST * LARGEST,
			DATAGRAMS_MOST * (LARGEST + 100) + 4096);
	flow_close(lp_side[1].flow);
	assert_in_range(pair->engine.hoard.bytes - before, 0, 4096);
	flow_close(lp_side[0].flow);
	pair_at_rest(pair);
}

/* A batch may bring more than all may hold: the first that is too much is the last. */
static void none_come_while_memory_is_short(void **state)
{
	struct pair *pair = *state;
	const uint64_t *crowded = &pair->lp->counts.datagrams.crowded;

	pair->settings.max_memory = pair->engine.hoard.bytes + 100 * 1024;
	fill(pair, 0);
	assert_in_range(pair->engine.hoard.bytes, pair->engine.hoard.max,
			pair->engine.hoard.max + 2 * WIRE_MESSAGE_MAX);
	assert_in_range(*crowded, DATAGRAMS_MOST / 2, DATAGRAMS_MOST - 1);
	run_round(pair->engine.loop);
	assert_in_range(pair->engine.hoard.bytes, 0, pair->engine.hoard.max);
	assert_int_equal(lp_side[0].ended, 0);
}

/* So much too much is there, and is shed: who holds most is LP's session. */
static void is_too_much_by(struct pair *pair, size_t bytes)
{
	struct hoard *all = &pair->engine.hoard;

	all->max = all->bytes - bytes;
	hoard_relieve(all);
	assert_true(all->bytes <= all->max - all->max / 8);
}

static bool heard_more(void *arg)
{
	const struct side *side = arg;

	return side->len == 4 && !memcmp(side->last, "more", 4);
}

/* They can be missed: connections stay, and so do flows, and those that have few. */
static void memory_short_takes_datagrams(void **state)
{
	struct pair *pair = *state;
	struct stats_counts *counts = &pair->lp->counts;

	pair_connect(pair, 0);
	begin(pair, 0);
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"few", 3);
	fill(pair, 1);
	fill(pair, 2);
	is_too_much_by(pair, 100 << 10);
	assert_in_range(counts->datagrams.crowded, DATAGRAMS_MOST,
			2 * DATAGRAMS_MOST);
	assert_int_equal(counts->datagrams.crowded % DATAGRAMS_MOST, 0);
	assert_int_equal(counts->queue_limit, 0);
	assert_int_equal(pair->engine.incidents.count[INCIDENT_MEMORY], 1);
	sides_expect(pair, &lp_side[0].came, 1);
	for (int i = 1; i <= 2; i++) {
		flow_send(lp_side[i].flow, NULL, (const uint8_t *)"more", 4);
		assert_true(run_until(pair->engine.loop, "the next one",
				      heard_more, &lp_side[i]));
	}
	assert_int_equal(write(pair->conn[0].client, "on", 2), 2);
	pair_expect(pair, pair->conn[0].server, "on", 2);
}

/* The flow whose owner holds most ends; others do not. */
static void memory_short_takes_who_holds_most(void **state)
{
	struct pair *pair = *state;

	begin(pair, 0);
	begin(pair, 1);
	flow_charge(lp_side[0].flow, 100 << 10);
	flow_charge(lp_side[1].flow, 1 << 20);
	is_too_much_by(pair, 500 << 10);
	assert_int_equal(lp_side[0].ended, 0);
	assert_int_equal(lp_side[1].ended, 1);
	flow_close(lp_side[0].flow);
	flow_charge(lp_side[0].flow, -(100 << 10));
	pair_at_rest(pair);
}

/* Neither one whose name is looked up, nor one whose end waits for a pipe, has a descriptor. */
static void descriptors_short_take_who_has_one(void **state)
{
	struct pair *pair = *state;

	for (int i = 0; i < 3; i++)
		begin(pair, i);
	sides_expect(pair, &sides_asked, 3);
	flow_took_socket(rp_side[1].flow);
	flow_took_socket(rp_side[2].flow);
	flow_close(rp_side[1].flow);
	assert_true(session_gives_up(pair->rp));
	assert_int_equal(rp_side[0].ended, 0);
	assert_int_equal(rp_side[2].ended, 1);
	assert_int_equal(pair->engine.incidents.count[INCIDENT_DESCRIPTORS], 1);
	flow_close(rp_side[0].flow);
	pair_at_rest(pair);
}

#define FLOW_TEST(f) \
	cmocka_unit_test_setup_teardown(f, sides_set_up, sides_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLOW_TEST(queues_are_in_the_account),
		FLOW_TEST(none_come_while_memory_is_short),
		FLOW_TEST(memory_short_takes_datagrams),
		FLOW_TEST(memory_short_takes_who_holds_most),
		FLOW_TEST(descriptors_short_take_who_has_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
