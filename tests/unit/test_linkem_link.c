/* SPDX-License-Identifier: MIT */
/* What a direction of the link does to time: rate, queue, trace, changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "linkem_bed.h"

/* --- delay and rate --- */

static void an_unlimited_link_only_delays(void **state)
{
	struct bed *bed = bed_new("delay_ms=25", 1);

	(void)state;
	for (int i = 0; i < 100; i++)
		bed_ip(bed, i * 1000, FULL);
	bed_play_out(bed);
	assert_int_equal(bed->n, 100);
	for (int i = 0; i < 100; i++)
		assert_true(bed->out[i].at == i * 1000 + 25 * NS_PER_MS);
	bed_free(bed);
}

static void a_packet_takes_its_bits_and_the_delay(void **state)
{
	struct bed *bed = bed_new("rate_mbps=10 delay_ms=25", 1);

	(void)state;
	bed_ip(bed, 0, FULL);		/* 1514 bytes: 1211.2 us */
	bed_ip(bed, 0, 114);		/* 91.2 us behind it */
	bed_ip(bed, 100 * NS_PER_MS, 114);	/* finds the link idle */
	bed_play_out(bed);
	assert_true(bed->out[0].at == 1211200 + 25 * NS_PER_MS);
	assert_true(bed->out[1].at == 1302400 + 25 * NS_PER_MS);
	assert_true(bed->out[2].at == 91200 + 125 * NS_PER_MS);
	bed_free(bed);
}

static void overhead_is_what_counts_beside_the_ip_packet(void **state)
{
	struct bed *bare = bed_new("rate_mbps=12 overhead_bytes=0", 1);
	struct bed *wire = bed_new("rate_mbps=12 overhead_bytes=38", 1);

	(void)state;
	bed_ip(bare, 0, FULL);
	bed_ip(wire, 0, FULL);
	bed_play_out(bare);
	bed_play_out(wire);
	assert_true(bare->out[0].at == 1000000);
	assert_true(wire->out[0].at == 1538LL * 8000 / 12);
	assert_int_equal(bare->link.count.in.bytes, 1500);
	assert_int_equal(wire->link.count.in.bytes, 1538);
	bed_free(bare);
	bed_free(wire);
}

/* Whoever looks at the link only now and then gets the same service. */
static void looking_late_changes_no_rate(void **state)
{
	const char *words = "rate_mbps=7.04 delay_ms=3 queue_packets=50 "
			    "loss=0.05 jitter_ms=2 aqm=codel";
	struct bed *often = bed_played_often(words, 5);
	struct bed *seldom = bed_played_seldom(words, 5);

	(void)state;
	bed_assert_alike(often, seldom);
	bed_free(often);
	bed_free(seldom);
}

/* --- queue --- */

/* Offered 1.1 times the rate for 20 s: how long did a packet wait at most? */
static int64_t longest_wait(struct bed *bed, double mbps)
{
	double gap_ns = FULL * 8e3 / (1.1 * mbps);
	int64_t longest = 0;

	for (int i = 0; i * gap_ns < 20.0 * NS_PER_S; i++)
		bed_ip(bed, (int64_t)(i * gap_ns), FULL);
	bed_play_out(bed);
	for (int i = 0; i < bed->n; i++) {
		int64_t wait = bed->out[i].at - bed->out[i].entered;

		longest = wait > longest ? wait : longest;
	}
	return longest;
}

static void a_queue_is_as_deep_as_declared(void **state)
{
	static const struct {
		const char *words;
		double ms;
	} queues[] = {
		{ "rate_mbps=10 queue_ms=100", 100 },
		{ "rate_mbps=10 queue_bytes=125000", 100 },
		{ "rate_mbps=10 queue_packets=50", 50 * 1.2112 },
		{ "rate_mbps=10 queue_ms=100 queue_packets=50", 50 * 1.2112 },
		{ "rate_mbps=2.286 queue_ms=500", 500 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
		struct bed *bed = bed_new(queues[i].words, 1);
		double mbps = bed->link.params.rate_mbps;
		double packet_ms = FULL * 8e-3 / mbps;
		double waited = (double)longest_wait(bed, mbps) / NS_PER_MS;

		/* The queue, and the packet's own and the one being sent. */
		assert_true(waited > queues[i].ms - packet_ms);
		assert_true(waited < queues[i].ms + 2 * packet_ms);
		assert_true(bed->link.count.dropped[LINK_QUEUE].packets > 0);
		bed_assert_conserved(bed);
		bed_free(bed);
	}
}

static void an_overloaded_link_is_never_idle(void **state)
{
	struct bed *bed = bed_new("rate_mbps=10 queue_ms=20", 1);

	(void)state;
	longest_wait(bed, 10);
	for (int i = 1; i < bed->n; i++) {
		int64_t gap = bed->out[i].at - bed->out[i - 1].at;

		assert_true(gap == 1211200);
	}
	bed_free(bed);
}

static void codel_keeps_the_wait_near_its_target(void **state)
{
	struct bed *bed = bed_new("rate_mbps=10 queue_ms=1000 aqm=codel", 1);
	int late = 0;

	(void)state;
	longest_wait(bed, 10);
	assert_true(bed->link.count.dropped[LINK_CODEL].packets > 0);
	assert_int_equal(bed->link.count.dropped[LINK_QUEUE].packets, 0);
	for (int i = bed->n / 2; i < bed->n; i++)
		late += bed->out[i].at - bed->out[i].entered > 60 * NS_PER_MS;
	assert_true(late < bed->n / 50);
	bed_assert_conserved(bed);
	bed_free(bed);
}

static void without_a_rate_there_is_no_queue(void **state)
{
	struct bed *bed = bed_new("queue_packets=1", 1);

	(void)state;
	for (int i = 0; i < 100; i++)
		bed_ip(bed, 0, FULL);
	bed_play_out(bed);
	assert_int_equal(bed->n, 100);
	bed_free(bed);
}

/* --- trace --- */

static void a_trace_delivers_what_it_allows_to_a_packet(void **state)
{
	static const int64_t at_ms[] = { 1, 2, 2, 9, 10, 11, 11, 18 };
	struct bed *bed = bed_new_traced("1\n2\n2\n9\n", "delay_ms=5");

	(void)state;
	for (int i = 0; i < 8; i++)
		bed_ip(bed, 0, FULL);
	bed_play_until(bed, 18 * NS_PER_MS);
	assert_int_equal(bed->link.count.opportunities, 8);
	assert_int_equal(bed->link.count.used, 8);
	bed_play_out(bed);
	assert_int_equal(bed->n, 8);
	for (int i = 0; i < 8; i++)
		assert_true(bed->out[i].at == (at_ms[i] + 5) * NS_PER_MS);
	bed_free(bed);
}

static void small_packets_share_an_opportunity(void **state)
{
	struct bed *bed = bed_new_traced("1\n2\n3\n", "");

	(void)state;
	/* 1514 bytes: three of 500 go, the fourth's first 14 bytes too. */
	for (int i = 0; i < 6; i++)
		bed_ip(bed, 0, 500);
	bed_ip(bed, 0, FULL);
	bed_play_out(bed);
	assert_true(bed->out[2].at == 1 * NS_PER_MS);
	assert_true(bed->out[3].at == 2 * NS_PER_MS);
	assert_true(bed->out[5].at == 2 * NS_PER_MS);
	assert_true(bed->out[6].at == 3 * NS_PER_MS);
	bed_free(bed);
}

static void an_opportunity_without_packets_is_wasted(void **state)
{
	struct bed *bed = bed_new_traced("1\n2\n3\n4\n", "");

	(void)state;
	bed_ip(bed, 2500000, FULL);
	bed_play_until(bed, 10 * NS_PER_MS);
	assert_true(bed->out[0].at == 3 * NS_PER_MS);
	/* Those at 0.. 9 ms have passed, the one at 10 is still to be had. */
	assert_int_equal(bed->link.count.opportunities, 9);
	assert_int_equal(bed->link.count.used, 1);
	bed_free(bed);
}

/* --- a delay that varies --- */

static void delays_follow_the_clock(void **state)
{
	static const int64_t sent_ms[] = { 0, 9, 10, 60, 70, 305 };
	static const double delay_ms[] = { 5, 5, 25.5, 5, 25.5, 5 };
	struct bed *bed = bed_new_delayed("10 5\n20 25.5\n30 0\n",
					  "delay_ms=100");

	(void)state;
	for (int i = 0; i < 6; i++) {
		bed_ip(bed, sent_ms[i] * NS_PER_MS, FULL);
		bed_play_until(bed, sent_ms[i] * NS_PER_MS);
	}
	bed_play_out(bed);
	for (int i = 0; i < 6; i++)
		assert_true(bed->out[i].at ==
			    sent_ms[i] * NS_PER_MS +
				    (int64_t)(delay_ms[i] * 1e6));
	bed_configure(bed, "delay_trace=none");
	bed_ip(bed, 400 * NS_PER_MS, FULL);
	bed_play_out(bed);
	assert_true(bed->out[6].at == 500 * NS_PER_MS);
	bed_free(bed);
}

/* The delay is that of the moment at which the last bit was sent. */
static void a_shorter_delay_keeps_the_order(void **state)
{
	struct bed *bed = bed_new_delayed("11 50\n1000 5\n",
					  "rate_mbps=1.2112");

	(void)state;
	for (int i = 0; i < 3; i++)
		bed_ip(bed, 0, FULL);
	bed_play_out(bed);
	assert_true(bed->out[0].at == 60 * NS_PER_MS);
	assert_true(bed->out[1].at == 60 * NS_PER_MS);
	assert_int_equal(bed_out_of_order(bed), 0);
	bed_free(bed);
}

/* --- changes while it runs --- */

static void less_delay_does_not_overtake(void **state)
{
	struct bed *bed = bed_new("delay_ms=100", 1);

	(void)state;
	bed_ip(bed, 0, FULL);
	bed_configure(bed, "delay_ms=10");
	bed_ip(bed, 20 * NS_PER_MS, FULL);
	bed_ip(bed, 200 * NS_PER_MS, FULL);
	bed_play_out(bed);
	assert_true(bed->out[1].at == 100 * NS_PER_MS);
	assert_true(bed->out[2].at == 210 * NS_PER_MS);
	assert_int_equal(bed_out_of_order(bed), 0);
	bed_free(bed);
}

static void a_new_rate_rules_from_the_next_packet(void **state)
{
	struct bed *bed = bed_new("rate_mbps=12.112", 1);

	(void)state;
	for (int i = 0; i < 10; i++)
		bed_ip(bed, 0, FULL);
	bed_play_until(bed, 4500000);
	bed_configure(bed, "rate_mbps=1.2112");
	bed_play_out(bed);
	assert_true(bed->out[4].at == 5 * NS_PER_MS);
	assert_true(bed->out[5].at == 15 * NS_PER_MS);
	assert_true(bed->out[9].at == 55 * NS_PER_MS);
	bed_free(bed);
}

static void the_limit_in_ms_follows_the_rate(void **state)
{
	struct bed *bed = bed_new("rate_mbps=10 queue_ms=100", 1);

	(void)state;
	assert_int_equal(bed->link.host.bulk.bytes_max, 125000);
	bed_configure(bed, "rate_mbps=1");
	assert_int_equal(bed->link.host.bulk.bytes_max, 12500);
	bed_configure(bed, "queue_bytes=3000");
	assert_int_equal(bed->link.host.bulk.bytes_max, 3000);
	bed_configure(bed, "queue_ms=none queue_bytes=none");
	assert_int_equal(bed->link.host.bulk.bytes_max, 0);
	assert_int_equal(bed->link.host.bulk.packets_max, 1000);
	bed_free(bed);
}

static void without_a_limit_the_queue_empties(void **state)
{
	struct bed *bed = bed_new("rate_mbps=0.1 delay_ms=1", 1);

	(void)state;
	for (int i = 0; i < 10; i++)
		bed_ip(bed, 0, FULL);
	bed_play_until(bed, NS_PER_MS);
	bed_configure(bed, "rate_mbps=none");
	/* The first is being sent and keeps its time; so order is kept. */
	bed_play_out(bed);
	assert_int_equal(bed->n, 10);
	assert_int_equal(bed_out_of_order(bed), 0);
	bed_free(bed);
}

static void a_trace_ends_in_a_rate(void **state)
{
	struct bed *bed = bed_new_traced("1\n1000\n", "trace_bytes=100");

	(void)state;
	bed_ip(bed, 0, FULL);
	bed_ip(bed, 0, FULL);
	bed_play_until(bed, 500 * NS_PER_MS);
	bed_configure(bed, "rate_mbps=12.112");
	assert_null(bed->link.params.trace_path);
	bed_play_out(bed);
	assert_int_equal(bed->n, 2);
	assert_true(bed->out[0].at == 500 * NS_PER_MS);
	assert_true(bed->out[1].at == 501 * NS_PER_MS);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unlimited_link_only_delays),
		cmocka_unit_test(a_packet_takes_its_bits_and_the_delay),
		cmocka_unit_test(overhead_is_what_counts_beside_the_ip_packet),
		cmocka_unit_test(looking_late_changes_no_rate),
		cmocka_unit_test(a_queue_is_as_deep_as_declared),
		cmocka_unit_test(an_overloaded_link_is_never_idle),
		cmocka_unit_test(codel_keeps_the_wait_near_its_target),
		cmocka_unit_test(without_a_rate_there_is_no_queue),
		cmocka_unit_test(a_trace_delivers_what_it_allows_to_a_packet),
		cmocka_unit_test(small_packets_share_an_opportunity),
		cmocka_unit_test(delays_follow_the_clock),
		cmocka_unit_test(a_shorter_delay_keeps_the_order),
		cmocka_unit_test(an_opportunity_without_packets_is_wasted),
		cmocka_unit_test(less_delay_does_not_overtake),
		cmocka_unit_test(a_new_rate_rules_from_the_next_packet),
		cmocka_unit_test(the_limit_in_ms_follows_the_rate),
		cmocka_unit_test(without_a_limit_the_queue_empties),
		cmocka_unit_test(a_trace_ends_in_a_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
