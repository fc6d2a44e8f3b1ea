/* SPDX-License-Identifier: MIT */
/* A radio link as a whole: what waits where, what passes, and how much. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "linkem_bed.h"

#define RADIO "grants=5ms,delay=8ms queue_packets=50 "

static const double PACKET = FULL;	/* bytes as the rate counts them */

static struct bed *radio(const char *format, ...)
{
	char words[256];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	return bed_new(words, 1);
}

/* So much is offered that the host always has something, until @until. */
static void offer(struct bed *bed, double mbps, int64_t until)
{
	double gap_ns = PACKET * 8e3 / mbps;
	int64_t from = bed->now;

	for (int i = 1; from + (int64_t)(i * gap_ns) <= until; i++)
		bed_ip(bed, from + (int64_t)(i * gap_ns), FULL);
	bed_play_until(bed, until);
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Of the waits in the firmware of what left after @since, a quantile. */
static double firmware_ms(const struct bed *bed, int64_t since, double share)
{
	int64_t *wait = calloc((size_t)bed->n, sizeof(*wait));
	size_t n = 0;
	double ms;

	assert_non_null(wait);
	for (int i = 0; i < bed->n; i++)
		if (bed->out[i].at > since)
			wait[n++] = bed->out[i].at - bed->out[i].passed;
	assert_true(n > 0);
	qsort(wait, n, sizeof(*wait), by_size);
	ms = (double)wait[(size_t)(share * (double)(n - 1))] / NS_PER_MS;
	free(wait);
	return ms;
}

static double mbps_between(const struct bed *bed, int64_t since, int64_t until)
{
	double bytes = 0;

	for (int i = 0; i < bed->n; i++)
		if (bed->out[i].at > since && bed->out[i].at <= until)
			bytes += PACKET;
	return bytes * 8e3 / (double)(until - since);
}

static void assert_near(double got, double wanted, double part,
			const char *what)
{
	if (fabs(got - wanted) > part * wanted)
		fail_msg("%s: %.4g, not %.4g within %.0f %%", what, got, wanted,
			 part * 100);
}

static void assert_in_order_and_all_there(const struct bed *bed)
{
	assert_int_equal(bed_out_of_order(bed), 0);
	bed_assert_conserved(bed);
	for (int i = 0; i < LINK_ENDS; i++)
		if (i != LINK_QUEUE)
			assert_int_equal(bed->link.count.dropped[i].packets, 0);
}

/* --- without a gate --- */

static void a_lone_packet_waits_for_a_report_and_its_grant(void **state)
{
	struct bed *bed = radio(RADIO "rate_mbps=8 delay_ms=25");

	(void)state;
	bed_ip(bed, 1 * NS_PER_MS, FULL);	/* reported at 5, sent at 13 */
	bed_ip(bed, 1000 * NS_PER_MS, FULL);	/* has just missed a report */
	bed_play_out(bed);
	assert_int_equal(bed->n, 2);
	assert_true(bed->out[0].at == 38 * NS_PER_MS);
	assert_true(bed->out[1].at == 1038 * NS_PER_MS);
	/* Of 1514 bytes one is told that they may be 1552. */
	assert_int_equal(bed->link.radio.grants.granted, 2 * 1552);
	assert_int_equal(bed->link.radio.grants.padded, 2 * (1552 - 1514));
	bed_free(bed);
}

static void a_bulk_gets_the_rate(void **state)
{
	static const double rates[] = { 0.8, 2, 2.286, 8, 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bed *bed = radio(RADIO "rate_mbps=%g", rates[i]);

		offer(bed, 2 * rates[i], 10 * NS_PER_S);
		assert_near(mbps_between(bed, NS_PER_S, 10 * NS_PER_S),
			    rates[i], 0.005, "rate");
		assert_in_order_and_all_there(bed);
		bed_free(bed);
	}
}

static void firmware_delays_by_what_it_holds(void **state)
{
	static const double rates[] = { 0.8, 2, 8, 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bed *bed = radio(RADIO "rate_mbps=%g", rates[i]);
		double ms = 8 * 300 / rates[i];

		offer(bed, 2 * rates[i], 20 * NS_PER_S);
		assert_near(firmware_ms(bed, 15 * NS_PER_S, 0), ms, 0.05,
			    "shortest wait");
		assert_near(firmware_ms(bed, 15 * NS_PER_S, 1), ms, 0.05,
			    "longest wait");
		assert_true(bed->link.host.bulk.packets >= 48);
		bed_free(bed);
	}
}

static void a_trace_says_what_may_be_granted(void **state)
{
	static const int64_t at_ms[] = { 18, 28, 28, 28, 38,
					 48, 48, 48, 58, 68 };
	struct bed *bed = bed_new_traced("3\n4\n10\n20\n",
					 "grants=5ms,delay=8ms");

	(void)state;
	for (int i = 0; i < 10; i++)
		bed_ip(bed, 0, FULL);
	bed_play_until(bed, 1000 * NS_PER_MS);
	bed_play_out(bed);
	assert_int_equal(bed->n, 10);
	/*
	 * What is granted at 5 ms is what the trace has from then to 10 ms,
	 * nothing; at 10 it is the opportunity of 10, at 20 those of 20, 23
	 * and 24. They have effect 8 ms later.
	 */
	for (int i = 0; i < 10; i++)
		assert_true(bed->out[i].at == at_ms[i] * NS_PER_MS);
	/* The last packet is reported as 1552 bytes: two opportunities. */
	assert_int_equal(bed->link.count.used, 11);
	assert_in_order_and_all_there(bed);
	bed_free(bed);
}

static void the_same_seed_gives_the_same_grants(void **state)
{
	const char *words = RADIO "rate_mbps=7.04 loss=0.05 jitter_ms=2 "
				  "gate=delay:20 host=codel";
	struct bed *often = bed_played_often(words, 5);
	struct bed *seldom = bed_played_seldom(words, 5);

	(void)state;
	bed_assert_alike(often, seldom);
	assert_int_equal(often->link.radio.grants.given,
			 seldom->link.radio.grants.given);
	assert_int_equal(often->link.radio.grants.granted,
			 seldom->link.radio.grants.granted);
	assert_int_equal(often->link.radio.grants.padded,
			 seldom->link.radio.grants.padded);
	bed_free(often);
	bed_free(seldom);
}

/* --- gates --- */

/*
 * Whole packets that reach N are reported, granted as a whole and sent 8 ms
 * later, and the gate that sees it lets as many pass at once: so many every
 * 10 ms, or the rate.
 */
static void a_gate_that_sees_gives_its_bytes_every_10_ms(void **state)
{
	static const struct {
		double mbps, bytes;
	} cases[] = {
		{ 0.8, 2000 }, { 2, 2000 }, { 8, 2000 }, { 20, 2000 },
		{ 100, 2000 }, { 8, 1 },     { 8, 1514 }, { 8, 1515 },
		{ 8, 20000 },  { 100, 20000 }, { 20, 50000 },
		{ 100, 50000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double bytes = ceil(cases[i].bytes / PACKET) * PACKET;
		double wanted = fmin(bytes * 8e-3 / 10, cases[i].mbps);
		struct bed *bed = radio(RADIO "rate_mbps=%g gate=bytes:%g "
					"telemetry_ms=0",
					cases[i].mbps, cases[i].bytes);
		char what[64];

		snprintf(what, sizeof(what), "%g bytes at %g Mbit/s",
			 cases[i].bytes, cases[i].mbps);
		for (int n = 0; n < 50; n++)
			bed_ip(bed, 0, FULL);
		offer(bed, 1.5 * wanted, 6 * NS_PER_S);
		assert_near(mbps_between(bed, NS_PER_S, 6 * NS_PER_S), wanted,
			    0.03, what);
		assert_in_order_and_all_there(bed);
		bed_free(bed);
	}
}

/*
 * Where grants come to be of parts, since the rate allows no more, or packets
 * came one by one, what a report was rounded up by is used, too.
 */
static void grants_in_parts_give_what_was_reported(void **state)
{
	static const double rates[] = { 20, 100 };
	double least = 14 * PACKET * 8e-3 / 10;		/* reach 20 KB */
	double most = 22624 * 8e-3 / 10;		/* the level's edge */

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bed *bed = radio(RADIO "rate_mbps=%g gate=bytes:20000 "
					"telemetry_ms=0", rates[i]);
		double got;

		offer(bed, 30, 6 * NS_PER_S);
		got = mbps_between(bed, NS_PER_S, 6 * NS_PER_S);
		assert_true(got > 0.99 * least);
		assert_true(got < 1.01 * most);
		bed_free(bed);
	}
}

/* The published threshold of each rate gives it, the next smaller does not. */
static void published_thresholds_are_those_that_suffice(void **state)
{
	static const struct {
		double mbps, bytes;
		bool suffices;
	} cases[] = {
		{ 0.8, 2000, true },  { 8, 2000, false },  { 8, 20000, true },
		{ 20, 20000, false }, { 20, 50000, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bed *bed = radio(RADIO "rate_mbps=%g gate=bytes:%g",
					cases[i].mbps, cases[i].bytes);
		double got;

		offer(bed, 1.5 * cases[i].mbps, 15 * NS_PER_S);
		got = mbps_between(bed, 5 * NS_PER_S, 15 * NS_PER_S) /
		      cases[i].mbps;
		print_message("%g Mbit/s, %g bytes: %.3f of the rate\n",
			      cases[i].mbps, cases[i].bytes, got);
		assert_int_equal(got >= 0.95, cases[i].suffices);
		assert_in_order_and_all_there(bed);
		bed_free(bed);
	}
}

static void a_gate_of_20_ms_holds_the_firmware_at_20_ms(void **state)
{
	static const double rates[] = { 0.8, 2, 8, 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bed *bed = radio(RADIO "rate_mbps=%g gate=delay:20",
					rates[i]);
		double packet_ms = PACKET * 8e-3 / rates[i];
		double median;

		offer(bed, 1.5 * rates[i], 20 * NS_PER_S);
		median = firmware_ms(bed, 5 * NS_PER_S, 0.5);
		print_message("%g Mbit/s: %.1f to %.1f to %.1f ms, %.3f of the rate\n",
			      rates[i], firmware_ms(bed, 5 * NS_PER_S, 0.05),
			      median, firmware_ms(bed, 5 * NS_PER_S, 0.95),
			      mbps_between(bed, 5 * NS_PER_S, 20 * NS_PER_S) /
				      rates[i]);
		assert_true(median <= 25 + packet_ms);
		assert_true(mbps_between(bed, 5 * NS_PER_S, 20 * NS_PER_S) >=
			    0.95 * rates[i]);
		assert_in_order_and_all_there(bed);
		bed_free(bed);
	}
}

/* With a rate that changes and pauses, and packets of all sizes. */
static void a_gate_keeps_order_and_loses_nothing(void **state)
{
	static const char *const gates[] = { "bytes:2000", "delay:20" };
	static const char *const rates[] = { "1", "30", "0.1", "8" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct bed *bed = radio(RADIO "rate_mbps=8 delay_ms=5 gate=%s",
					gates[i]);
		uint32_t len = 7;

		for (int n = 0; n < 8000; n++) {
			char words[32];

			len = len * 1103515245 + 12345;
			bed_ip(bed, bed->now + len % (2 * NS_PER_MS),
			       60 + (len >> 8) % (FULL - 60));
			if (n % 1000 == 999) {
				snprintf(words, sizeof(words), "rate_mbps=%s",
					 rates[n / 1000 % 4]);
				bed_configure(bed, words);
			}
		}
		bed_play_out(bed);
		assert_in_order_and_all_there(bed);
		assert_int_equal(bed->link.count.in.packets,
				 bed->link.count.out.packets +
					 bed->link.count.dropped[LINK_QUEUE]
						 .packets);
		assert_int_equal(bed->fell_open, 0);
		bed_free(bed);
	}
}

static void a_gate_without_telemetry_falls_open_and_says_so_once(void **state)
{
	struct bed *bed = radio(RADIO "rate_mbps=8 gate=bytes:2000");

	(void)state;
	offer(bed, 16, 5 * NS_PER_S);
	assert_int_equal(bed->fell_open, 0);
	bed_configure(bed, "telemetry_ms=none");
	offer(bed, 16, 10 * NS_PER_S);
	assert_int_equal(bed->fell_open, 1);
	assert_near(mbps_between(bed, 7 * NS_PER_S, 10 * NS_PER_S), 8, 0.01,
		    "rate of an open gate");
	assert_true(firmware_is_full(&bed->link.radio.firmware));
	bed_configure(bed, "telemetry_ms=100");
	offer(bed, 16, 20 * NS_PER_S);
	assert_true(mbps_between(bed, 15 * NS_PER_S, 20 * NS_PER_S) < 4);
	assert_true(firmware_bytes(&bed->link.radio.firmware) < 8000);
	bed_configure(bed, "telemetry_ms=none");
	offer(bed, 16, 25 * NS_PER_S);
	assert_int_equal(bed->link.radio.gate.falls, 2);
	assert_int_equal(bed->fell_open, 1);
	bed_play_out(bed);
	assert_in_order_and_all_there(bed);
	bed_free(bed);
}

/* Also where nothing was ever told, and after a pause. */
static void a_gate_that_was_never_told_does_not_stick(void **state)
{
	static const char *const gates[] = { "bytes:1", "delay:0.1" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct bed *bed = radio(RADIO "rate_mbps=8 telemetry_ms=none "
					"gate=%s", gates[i]);

		for (int n = 0; n < 40; n++)
			bed_ip(bed, 0, FULL);
		bed_play_until(bed, 3 * NS_PER_S);
		assert_int_equal(bed->n, 40);
		assert_int_equal(bed->fell_open, 1);
		bed_ip(bed, 100 * NS_PER_S, FULL);
		bed_play_until(bed, 102 * NS_PER_S);
		assert_int_equal(bed->n, 41);
		bed_free(bed);
	}
}

static void an_idle_radio_does_nothing(void **state)
{
	struct bed *bed = radio(RADIO "rate_mbps=8 gate=delay:20");

	(void)state;
	assert_true(link_next(&bed->link) == NEVER);
	bed_ip(bed, NS_PER_MS, FULL);
	assert_true(link_next(&bed->link) == 5 * NS_PER_MS);
	bed_play_out(bed);
	/* Sent at 13, told at 15, known at 115: then all is said. */
	assert_true(bed->now == 115 * NS_PER_MS);
	assert_true(link_next(&bed->link) == NEVER);
	assert_true(estimate_bytes(&bed->link.radio.estimate, bed->now) == 0);
	bed_free(bed);
}

/* --- the estimate beside the truth --- */

enum { LOOKS = 1000 };

static void the_estimate_follows_the_truth(void **state)
{
	static const double rates[] = { 2, 8, 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bed *bed = radio(RADIO "rate_mbps=%g gate=bytes:50000",
					rates[i]);
		const struct radio *r = &bed->link.radio;
		double sum = 0, truth = 0;

		offer(bed, 2 * rates[i], 5 * NS_PER_S);
		/* Looks at all times between two reports. */
		for (int n = 0; n < LOOKS; n++) {
			offer(bed, 2 * rates[i], bed->now + 7 * NS_PER_MS);
			sum += estimate_bytes(&r->estimate, bed->now);
			truth += (double)firmware_bytes(&r->firmware);
		}
		print_message("%g Mbit/s: estimate %.0f, truth %.0f bytes\n",
			      rates[i], sum / LOOKS, truth / LOOKS);
		/* A level is 17 % wide. */
		assert_near(sum, truth, 0.1, "mean estimate");
		bed_free(bed);
	}
}

/* --- the host's queue --- */

static void interactive_waits_for_no_bulk(void **state)
{
	struct bed *bed = radio(RADIO "rate_mbps=8 gate=delay:20 host=prio");
	int64_t longest = 0, shortest_bulk = NEVER;
	int n = 0;

	(void)state;
	offer(bed, 16, 5 * NS_PER_S);
	for (int i = 0; i < 100; i++) {
		offer(bed, 16, bed->now + 20 * NS_PER_MS);
		bed_dscp(bed, bed->now, 114, 46);
	}
	bed_play_out(bed);
	for (int i = 0; i < bed->n; i++) {
		int64_t wait = bed->out[i].at - bed->out[i].entered;
		bool is_bulk = bed->out[i].len == FULL;

		if (bed->out[i].entered < 5 * NS_PER_S)
			continue;
		n += !is_bulk;
		if (!is_bulk && wait > longest)
			longest = wait;
		if (is_bulk && wait < shortest_bulk)
			shortest_bulk = wait;
	}
	assert_int_equal(n, 100);
	print_message("interactive at most %.1f ms, bulk at least %.1f\n",
		      (double)longest / NS_PER_MS,
		      (double)shortest_bulk / NS_PER_MS);
	/* What waits in the firmware is before it, and the next report. */
	assert_true(longest < 60 * NS_PER_MS);
	assert_true(shortest_bulk > 60 * NS_PER_MS);
	bed_assert_conserved(bed);
	bed_free(bed);
}

static void codel_drops_above_the_gate_only(void **state)
{
	struct bed *bed = radio("grants=5ms,delay=8ms rate_mbps=8 "
				"gate=delay:20 host=codel queue_packets=9999");

	(void)state;
	offer(bed, 9, 20 * NS_PER_S);
	assert_true(bed->link.count.dropped[LINK_CODEL].packets > 100);
	assert_int_equal(bed->link.count.dropped[LINK_QUEUE].packets, 0);
	assert_near(mbps_between(bed, 5 * NS_PER_S, 20 * NS_PER_S), 8, 0.05,
		    "rate");
	bed_assert_conserved(bed);
	assert_int_equal(bed_out_of_order(bed), 0);
	bed_free(bed);
}

/* --- changes while it runs --- */

static void a_link_becomes_a_radio_and_back(void **state)
{
	struct bed *bed = radio("rate_mbps=8 queue_packets=2000 delay_ms=3");

	(void)state;
	for (int round = 0; round < 5; round++) {
		offer(bed, 12, bed->now + 200 * NS_PER_MS);
		bed_configure(bed, "grants=5ms,delay=8ms gate=bytes:20000");
		offer(bed, 12, bed->now + 203 * NS_PER_MS);
		bed_assert_conserved(bed);
		assert_true(bed->link.radio.firmware.queue.packets > 0);
		bed_configure(bed, "grants=none gate=none");
		assert_int_equal(bed->link.radio.firmware.queue.packets, 0);
		bed_assert_conserved(bed);
	}
	bed_play_out(bed);
	assert_in_order_and_all_there(bed);
	assert_int_equal(bed->link.count.in.packets,
			 bed->link.count.out.packets);
	bed_free(bed);
}

/* The rate serves from the moment at which the radio ends on. */
static void what_a_radio_leaves_waiting_has_the_rate(void **state)
{
	struct bed *bed = radio(RADIO "rate_mbps=2");
	int64_t end = 2 * NS_PER_S;
	int sent;

	(void)state;
	offer(bed, 4, end);
	sent = bed->n;
	bed_configure(bed, "grants=none");
	bed_play_out(bed);
	assert_true(bed->n - sent > 200);
	for (int i = sent; i < bed->n; i++)
		assert_true(bed->out[i].at == end + (i - sent + 1) * 6056000LL);
	bed_free(bed);
}

static void a_restart_begins_the_grid_anew(void **state)
{
	struct bed *bed = radio(RADIO "rate_mbps=8");

	(void)state;
	bed_ip(bed, NS_PER_MS, FULL);
	bed_play_until(bed, 1002 * NS_PER_MS);
	link_restart(&bed->link, 9, bed->now);
	bed_ip(bed, 1003 * NS_PER_MS, FULL);
	bed_play_out(bed);
	/* Reported 5 ms after the restart. */
	assert_true(bed->out[1].at == 1015 * NS_PER_MS);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lone_packet_waits_for_a_report_and_its_grant),
		cmocka_unit_test(a_bulk_gets_the_rate),
		cmocka_unit_test(firmware_delays_by_what_it_holds),
		cmocka_unit_test(a_trace_says_what_may_be_granted),
		cmocka_unit_test(the_same_seed_gives_the_same_grants),
		cmocka_unit_test(a_gate_that_sees_gives_its_bytes_every_10_ms),
		cmocka_unit_test(grants_in_parts_give_what_was_reported),
		cmocka_unit_test(published_thresholds_are_those_that_suffice),
		cmocka_unit_test(a_gate_of_20_ms_holds_the_firmware_at_20_ms),
		cmocka_unit_test(a_gate_keeps_order_and_loses_nothing),
		cmocka_unit_test(
			a_gate_without_telemetry_falls_open_and_says_so_once),
		cmocka_unit_test(a_gate_that_was_never_told_does_not_stick),
		cmocka_unit_test(an_idle_radio_does_nothing),
		cmocka_unit_test(the_estimate_follows_the_truth),
		cmocka_unit_test(interactive_waits_for_no_bulk),
		cmocka_unit_test(codel_drops_above_the_gate_only),
		cmocka_unit_test(a_link_becomes_a_radio_and_back),
		cmocka_unit_test(what_a_radio_leaves_waiting_has_the_rate),
		cmocka_unit_test(a_restart_begins_the_grid_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
