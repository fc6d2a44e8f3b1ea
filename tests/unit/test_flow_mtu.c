/* SPDX-License-Identifier: MIT */
/* What must not be fragmented behind RP, and how LP hears what the path there takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "halted.h"
#include "loopback.h"
#include "mux/extension/datagrams.h"
#include "sides.h"

static const struct destination any = { .kind = DESTINATION_NONE };

static void begin(struct pair *pair, const struct destination *to)
{
	sides_echo = false;
	sides_begin(pair, 0, to);
	flow_send(lp_side[0].flow, to->kind ? &flow_whole : &any,
		  (const uint8_t *)"1", 1);
}

static void says_what_is_whole(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	begin(pair, &to);
	sides_expect(pair, &rp_side[0].came, 1);
	assert_true(flow_is_whole(rp_side[0].flow, &rp_side[0].at));
	flow_send(lp_side[0].flow, NULL, (const uint8_t *)"2", 1);
	sides_expect(pair, &rp_side[0].came, 2);
	assert_false(flow_is_whole(rp_side[0].flow, &rp_side[0].at));
}

static void tells_the_mtu(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	begin(pair, &to);
	sides_expect(pair, &rp_side[0].came, 1);
	flow_tell_mtu(rp_side[0].flow, 1400);
	sides_expect(pair, &lp_side[0].told, 1);
	assert_int_equal(lp_side[0].mtu, 1400);
	assert_int_equal(pair->rp->counts.too_big, 1);
	assert_int_equal(pair->lp->counts.too_big, 1);
	/* Loopback's, which is more than the message has bits for. */
	clock_halt();
	clock_pass(FLOW_MTU_PAUSE_MS * NS_PER_MS);
	run_round(pair->engine.loop);
	flow_tell_mtu(rp_side[0].flow, 65536);
	clock_go_on();
	sides_expect(pair, &lp_side[0].told, 2);
	assert_int_equal(lp_side[0].mtu, UINT16_MAX);
}

static void tells_it_seldom(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	unsigned int i;

	begin(pair, &to);
	sides_expect(pair, &rp_side[0].came, 1);
	clock_halt();
	for (i = 0; i < 10 * FLOW_MTU_PAUSE_MS; i++) {
		flow_tell_mtu(rp_side[0].flow, 1400);
		clock_pass(NS_PER_MS);
		run_round(pair->engine.loop);
	}
	clock_go_on();
	sides_expect(pair, &lp_side[0].told, 10);
	assert_int_equal(pair->rp->counts.too_big, 10);
}

/* What was due goes with its flow. */
static void is_not_told_after_the_end(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	begin(pair, &to);
	sides_expect(pair, &rp_side[0].came, 1);
	flow_tell_mtu(rp_side[0].flow, 1400);
	flow_close(rp_side[0].flow);
	assert_true(list_empty(&pair->rp->ext->narrow));
	sides_expect(pair, &lp_side[0].ended, 1);
	assert_int_equal(lp_side[0].told, 0);
	pair_at_rest(pair);
}

static void of_one_destination_alone(void **state)
{
	struct pair *pair = *state;

	sides_begin(pair, 0, &any);
	assert_false(flow_tells_mtu(lp_side[0].flow));
}

static void bad_ones_are_dropped(void **state)
{
	struct pair *pair = *state;
	struct destination to[3] = {
		sides_server(7),
		destination_ipv6((uint8_t[16]){ 0x20, 1, [15] = 9 }, 9),
		any,
	};
	const struct wire_too_big bad[] = {
		{ 1, 67 }, { 1, 0 }, { 2, 1279 }, { 3, 1400 }, { 4, 1400 },
		{ 40000, 1400 },
	};
	enum { BAD = sizeof(bad) / sizeof(*bad) };
	uint64_t before;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		sides_begin(pair, (int)i, &to[i]);
		assert_int_equal(flow_conn(lp_side[i].flow)->id, i + 1);
	}
	before = pair->lp->counts.dropped;
	for (i = 0; i < BAD; i++)
		flows_told_mtu(pair->lp, &bad[i]);
	assert_int_equal(pair->lp->counts.dropped - before, BAD);
	assert_int_equal(pair->lp->counts.too_big, 0);
	flows_told_mtu(pair->lp, &(struct wire_too_big){ 1, 68 });
	flows_told_mtu(pair->lp, &(struct wire_too_big){ 2, 1280 });
	assert_int_equal(lp_side[0].mtu, 68);
	assert_int_equal(lp_side[1].mtu, 1280);
	assert_int_equal(pair->lp->counts.too_big, 2);
}

/* As one of before: nothing of it is said, and what comes nevertheless is dropped. */
static void without_the_feature(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	pair->lacks = WIRE_FEATURE_MTU;
	pair_begin(pair, 2);
	sides_prepare(pair);
	begin(pair, &to);
	sides_expect(pair, &rp_side[0].came, 1);
	assert_int_equal(rp_side[0].at.port, 0);
	assert_false(flow_tells_mtu(lp_side[0].flow));
	flow_tell_mtu(rp_side[0].flow, 1400);
	assert_true(list_empty(&pair->rp->ext->narrow));
	flows_told_mtu(pair->lp, &(struct wire_too_big){
		flow_conn(lp_side[0].flow)->id, 1400 });
	assert_int_equal(lp_side[0].told, 0);
	assert_int_equal(pair->lp->counts.dropped, 1);
	/* Nor does RP believe a flag that LP was not to set. */
	assert_false(flow_is_whole(rp_side[0].flow, &flow_whole));
}

#define MTU_TEST(f) \
	cmocka_unit_test_setup_teardown(f, sides_set_up, sides_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MTU_TEST(says_what_is_whole),
		MTU_TEST(tells_the_mtu),
		MTU_TEST(tells_it_seldom),
		MTU_TEST(is_not_told_after_the_end),
		MTU_TEST(of_one_destination_alone),
		MTU_TEST(bad_ones_are_dropped),
		cmocka_unit_test_setup_teardown(without_the_feature,
						pair_setup_new, sides_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
