/* SPDX-License-Identifier: MIT */
/* What a radio link is made of: reports, grants, estimate, gate, queues. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topologies/linkem/estimate.h"
#include "topologies/linkem/frame.h"
#include "topologies/linkem/gate.h"
#include "topologies/linkem/grants.h"
#include "topologies/linkem/host.h"
#include "topologies/linkem/interactive.h"
#include "topologies/linkem/report.h"
#include "topologies/linkem/telemetry.h"

enum { MS = 1000000 };

/* --- reports --- */

/* 3GPP TS 36.321, table 6.1.3.1-1, and TS 38.321, table 6.1.3.1-1. */
static const uint32_t lte[] = {
	0, 10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125,
	146, 171, 200, 234, 274, 321, 376, 440, 515, 603, 706, 826, 967, 1132,
	1326, 1552, 1817, 2127, 2490, 2915, 3413, 3995, 4677, 5476, 6411, 7505,
	8787, 10287, 12043, 14099, 16507, 19325, 22624, 26487, 31009, 36304,
	42502, 49759, 58255, 68201, 79846, 93479, 109439, 128125, 150000,
};
static const uint32_t nr[] = {
	0, 10, 14, 20, 28, 38, 53, 74, 102, 142, 198, 276, 384, 535, 745, 1038,
	1446, 2014, 2806, 3909, 5446, 7587, 10570, 14726, 20516, 28581, 39818,
	55474, 77284, 107669, 150000,
};

static struct report levels(uint32_t n, double cap_kb)
{
	const struct report_spec spec = { n, cap_kb };
	struct report r;

	report_init(&r, &spec);
	return r;
}

static void levels_are_those_of_the_standards(void **state)
{
	struct report of_lte = levels(64, 150);
	struct report of_nr = levels(32, 150);

	(void)state;
	assert_int_equal(sizeof(lte) / sizeof(lte[0]), 63);
	assert_memory_equal(of_lte.edge, lte, sizeof(lte));
	assert_int_equal(sizeof(nr) / sizeof(nr[0]), 31);
	assert_memory_equal(of_nr.edge, nr, sizeof(nr));
}

static void a_level_ends_at_its_edge(void **state)
{
	struct report r = levels(64, 150);

	(void)state;
	assert_int_equal(report_level(&r, 0), 0);
	assert_int_equal(report_level(&r, 1), 1);
	for (uint32_t i = 1; i < 63; i++) {
		assert_int_equal(report_level(&r, lte[i]), i);
		assert_int_equal(report_level(&r, lte[i] + 1ULL), i + 1);
	}
	assert_int_equal(report_level(&r, 1ULL << 40), 63);
	assert_true(report_is_last(&r, 63));
	assert_false(report_is_last(&r, 62));
}

static void a_level_is_read_as_its_most(void **state)
{
	struct report r = levels(64, 150);

	(void)state;
	assert_int_equal(report_most(&r, 0), 0);
	assert_int_equal(report_most(&r, 50), 22624);
	assert_int_equal(report_most(&r, 63), 150000);
}

/* --- grants --- */

static struct grants granting(double every_ms, double delay_ms)
{
	const struct grants_spec spec = { every_ms, delay_ms };
	struct grants g;

	memset(&g, 0, sizeof(g));
	grants_configure(&g, &spec, 0);
	return g;
}

static void a_grant_takes_effect_after_its_delay(void **state)
{
	struct grants g = granting(5, 8);

	(void)state;
	assert_true(grants_tick_after(&g, 0) == 5 * MS);
	assert_true(grants_tick_after(&g, 5 * MS - 1) == 5 * MS);
	assert_true(grants_tick_after(&g, 5 * MS) == 10 * MS);
	assert_true(grants_due(&g) == NEVER);
	assert_int_equal(grants_wanted(&g, 3000), 3000);
	grants_give(&g, 1250, 5 * MS);
	/* What is granted and still under way is not granted again. */
	assert_int_equal(grants_wanted(&g, 3000), 1750);
	grants_give(&g, 1250, 10 * MS);
	assert_int_equal(grants_wanted(&g, 2400), 0);
	assert_true(grants_due(&g) == 13 * MS);
	assert_int_equal(grants_take(&g), 1250);
	assert_true(grants_due(&g) == 18 * MS);
	assert_int_equal(grants_wanted(&g, 2400), 1150);
	assert_int_equal(grants_take(&g), 1250);
	grants_pad(&g, 100);
	assert_int_equal(g.granted, 2500);
	assert_int_equal(g.padded, 100);
	assert_int_equal(g.given, 2);
	assert_int_equal(g.under_way, 0);
}

static void a_rate_is_granted_to_the_byte(void **state)
{
	struct grants g = granting(5, 8);
	uint64_t bytes = 0;

	(void)state;
	/* 2.286 Mbit/s: 1428.75 bytes each 5 ms. */
	for (int i = 0; i < 4000; i++)
		bytes += grants_capacity(&g, 2286000);
	assert_int_equal(bytes, 5715000);
}

static void a_shorter_delay_lets_no_grant_overtake(void **state)
{
	const struct grants_spec shorter = { 5, 1 };
	struct grants g = granting(5, 100);

	(void)state;
	grants_give(&g, 1, 5 * MS);
	grants_configure(&g, &shorter, 7 * MS);
	grants_give(&g, 2, 12 * MS);
	assert_true(grants_due(&g) == 105 * MS);
	assert_int_equal(grants_take(&g), 1);
	assert_true(grants_due(&g) == 105 * MS);
	assert_int_equal(grants_take(&g), 2);
}

/* --- the estimate --- */

static struct record told(int64_t at_ms, uint32_t level, uint64_t granted,
			  uint64_t padded)
{
	return (struct record){ at_ms * MS, 5 * MS, level, granted, padded };
}

/* Until R is known nothing leaves; so (3.2) adds up what passed. */
static void without_a_rate_all_that_passed_is_there(void **state)
{
	struct report r = levels(64, 150);
	struct estimate e = { 0 };

	(void)state;
	estimate_pass(&e, 1000, 1 * MS);
	estimate_pass(&e, 500, 2 * MS);
	assert_true(estimate_bytes(&e, 50 * MS) == 1500);
	assert_true(estimate_falls_to(&e, 1500) == 2 * MS);
	assert_true(estimate_falls_to(&e, 1499) == NEVER);
	/* S_0 of 1 ms: what passed then is in it, what passed later is not. */
	const struct record record = told(1, report_level(&r, 1000), 0, 0);

	estimate_hear(&e, &record, &r);
	assert_true(estimate_bytes(&e, 50 * MS) == 1132 + 500);
	estimate_fini(&e);
}

/* 20 ms in which @bytes were sent, in records of 5 ms. */
static void four_records(struct estimate *e, const struct report *r,
			 int64_t at_ms, uint64_t bytes)
{
	for (int i = 1; i <= 4; i++) {
		const struct record record =
			told(at_ms + 5 * i, 20, bytes / 4 + 30, 30);

		estimate_hear(e, &record, r);
	}
}

static void the_rate_is_an_exponential_mean_over_20_ms(void **state)
{
	struct report r = levels(64, 150);
	struct estimate e = { 0 };
	struct record record;

	(void)state;
	four_records(&e, &r, 0, 20000);
	assert_true(e.has_rate);
	assert_float_equal(e.rate * MS, 1000, 1e-9);	/* bytes a ms */
	record = told(25, 20, 100000, 0);
	estimate_hear(&e, &record, &r);
	assert_float_equal(e.rate * MS, 1000, 1e-9);	/* 5 ms are not 20 */
	e.sent = 0;
	e.span = 0;
	four_records(&e, &r, 20, 0);
	assert_float_equal(e.rate * MS, 750, 1e-9);
	four_records(&e, &r, 40, 40000);
	assert_float_equal(e.rate * MS, 0.25 * 2000 + 0.75 * 750, 1e-9);
	/* Nothing asked for, nothing granted: no measurement. */
	record = told(65, 0, 0, 0);
	for (int i = 0; i < 100; i++)
		estimate_hear(&e, &record, &r);
	assert_float_equal(e.rate * MS, 1062.5, 1e-9);
	estimate_fini(&e);
}

/* By hand, R = 100 bytes a ms, S_0 = 967 (level 30) of t_0 = 100 ms. */
static void equations_by_hand(void **state)
{
	struct report r = levels(64, 150);
	struct estimate e = { 0 };
	struct record record;

	(void)state;
	four_records(&e, &r, 0, 2000);
	estimate_pass(&e, 700, 90 * MS);	/* before t_0: in S_0 */
	estimate_pass(&e, 1500, 104 * MS);
	estimate_pass(&e, 1000, 150 * MS);
	estimate_pass(&e, 300, 151 * MS);
	record = told(100, report_level(&r, 960), 500, 0);
	assert_int_equal(record.level, 30);
	estimate_hear(&e, &record, &r);
	/*
	 * B(104) = 967 - 400 + 1500 = 2067
	 * B(150) = 0 + 1000: 4600 bytes could have left, 2067 did
	 * B(151) = 1000 - 100 + 300 = 1200
	 */
	assert_float_equal(estimate_bytes(&e, 151 * MS), 1200, 1e-6);
	assert_float_equal(estimate_bytes(&e, 155 * MS), 800, 1e-6);
	assert_float_equal(estimate_bytes(&e, 170 * MS), 0, 1e-6);
	assert_true(estimate_falls_to(&e, 1200) == 151 * MS);
	assert_true(llabs(estimate_falls_to(&e, 1000) - 153 * MS) <= 1);
	assert_true(llabs(estimate_falls_to(&e, 0) - 163 * MS) <= 1);
	/* A newer report takes the place of what was known until then. */
	record = told(150, 0, 0, 0);
	estimate_hear(&e, &record, &r);
	assert_float_equal(estimate_bytes(&e, 151 * MS), 300, 1e-6);
	estimate_fini(&e);
}

static void the_last_level_does_not_lower_an_estimate(void **state)
{
	struct report r = levels(64, 150);
	struct estimate e = { 0 };
	struct record record = told(10, 63, 0, 0);

	(void)state;
	estimate_hear(&e, &record, &r);
	assert_float_equal(estimate_bytes(&e, 10 * MS), 150000, 1e-6);
	for (int i = 0; i < 100; i++)
		estimate_pass(&e, 1500, (11 + i) * MS);
	assert_float_equal(estimate_bytes(&e, 120 * MS), 300000, 1e-6);
	record.at = 115 * MS;
	estimate_hear(&e, &record, &r);
	assert_float_equal(estimate_bytes(&e, 120 * MS), 300000, 1e-6);
	record.level = 62;
	record.at = 116 * MS;
	estimate_hear(&e, &record, &r);
	assert_float_equal(estimate_bytes(&e, 120 * MS), 150000, 1e-6);
	estimate_fini(&e);
}

/* Whatever is told and however long nothing is: the ring holds 600 ms. */
static void what_passed_long_ago_is_forgotten(void **state)
{
	struct report r = levels(64, 150);
	struct estimate e = { 0 };
	const struct record record = told(99990, 1, 0, 0);

	(void)state;
	for (int64_t i = 0; i < 100000; i++)
		estimate_pass(&e, 100, i * MS);
	assert_true(e.n <= 601);
	assert_true(e.room <= 1024);
	assert_true(estimate_bytes(&e, 100000LL * MS) == 1e7);
	estimate_hear(&e, &record, &r);
	assert_true(estimate_bytes(&e, 100000LL * MS) == 10 + 900);
	estimate_fini(&e);
}

static void telemetry_comes_late_and_in_order(void **state)
{
	struct telemetry *t = calloc(1, sizeof(*t));
	struct record record = told(5, 1, 0, 0);

	(void)state;
	t->delay = 100 * MS;
	assert_true(telemetry_due(t) == NEVER);
	telemetry_tell(t, &record);
	t->delay = 0;
	record = told(10, 2, 0, 0);
	telemetry_tell(t, &record);
	t->delay = -1;
	record = told(15, 3, 0, 0);
	telemetry_tell(t, &record);
	assert_true(telemetry_due(t) == 105 * MS);
	assert_int_equal(telemetry_take(t).level, 1);
	assert_true(telemetry_due(t) == 105 * MS);
	assert_int_equal(telemetry_take(t).level, 2);
	assert_true(telemetry_due(t) == NEVER);
	free(t);
}

/* --- the gate --- */

static struct gate gate_of(const char *words)
{
	struct gate g = { 0 };
	char why[256] = "";

	if (gate_parse(&g.spec, words, why, sizeof(why)))
		fail_msg("%s: %s", words, why);
	return g;
}

static void a_gate_of_bytes_opens_below_them(void **state)
{
	struct gate g = gate_of("bytes:2000");
	struct estimate e = { .at = 7, .bytes = 1999 };

	(void)state;
	assert_true(gate_opens(&g, &e, 1 << 20) <= 7);
	e.bytes = 2000;
	assert_true(gate_opens(&g, &e, 0) == NEVER);
	e.rate = 100e-6;
	e.bytes = 2999;
	assert_true(llabs(gate_opens(&g, &e, 0) - 7 - 10 * MS) <= 1);
	g.sees = true;
	assert_true(gate_opens(&g, &e, 1999) <= 7);
	assert_true(gate_opens(&g, &e, 2000) == NEVER);
}

static void a_gate_of_delay_goes_by_the_rate(void **state)
{
	struct gate g = gate_of("delay:20");
	struct estimate e = { .at = 7, .bytes = 1 };

	(void)state;
	/* Without a rate a packet passes when the firmware is empty. */
	assert_true(gate_opens(&g, &e, 0) == NEVER);
	e.bytes = 0;
	assert_true(gate_opens(&g, &e, 0) <= 7);
	e.rate = 100e-6;	/* 20 ms are 2000 bytes */
	e.bytes = 1999;
	assert_true(gate_opens(&g, &e, 0) <= 7);
	e.bytes = 2100;
	assert_true(llabs(gate_opens(&g, &e, 0) - 7 - 1 * MS) <= 1);
}

static void a_gate_falls_open_when_nothing_comes(void **state)
{
	struct gate g = gate_of("bytes:2000");
	struct estimate e = { .at = 7, .bytes = 5000 };

	(void)state;
	gate_owed(&g, 50 * MS);
	assert_true(gate_falls(&g) == NEVER);	/* nothing waits */
	g.holds = true;
	assert_true(gate_falls(&g) == 1050 * MS);
	gate_heard(&g, 60 * MS);
	assert_true(gate_falls(&g) == 1060 * MS);
	gate_fall(&g);
	assert_true(gate_falls(&g) == NEVER);
	assert_true(gate_opens(&g, &e, 5000) <= 7);
	gate_heard(&g, 2000 * MS);
	assert_true(gate_opens(&g, &e, 5000) == NEVER);
	assert_int_equal(g.falls, 1);
}

/* --- what is interactive --- */

struct header {
	uint8_t bytes[128];
	size_t len;
};

static struct header ipv4(int dscp, int protocol, int offset, int from, int to)
{
	struct header h = { .len = FRAME_HEADER + 24 + 8 };
	uint8_t *ip = h.bytes + FRAME_HEADER;

	ip[0] = 0x46;	/* with an option of four bytes */
	ip[1] = (uint8_t)(dscp << 2 | 3);
	ip[6] = (uint8_t)(offset >> 8);
	ip[7] = (uint8_t)offset;
	ip[9] = (uint8_t)protocol;
	ip[24] = (uint8_t)(from >> 8);
	ip[25] = (uint8_t)from;
	ip[26] = (uint8_t)(to >> 8);
	ip[27] = (uint8_t)to;
	return h;
}

static struct header ipv6(int dscp, int protocol, int from, int to)
{
	struct header h = { .len = FRAME_HEADER + 40 + 8 };
	uint8_t *ip = h.bytes + FRAME_HEADER;

	ip[0] = (uint8_t)(0x60 | dscp >> 2);
	ip[1] = (uint8_t)(dscp << 6);
	ip[6] = (uint8_t)protocol;
	ip[40] = (uint8_t)(from >> 8);
	ip[41] = (uint8_t)from;
	ip[42] = (uint8_t)(to >> 8);
	ip[43] = (uint8_t)to;
	return h;
}

static void assert_is(const char *words, struct header h, bool wanted)
{
	struct interactive i;
	char why[256] = "";

	if (interactive_parse(&i, words, why, sizeof(why)))
		fail_msg("%s: %s", words, why);
	assert_int_equal(interactive_has(&i, h.bytes, h.len), wanted);
	/* Shorter frames say less and are read no further. */
	for (size_t len = 0; len < h.len; len++) {
		uint8_t *cut = malloc(len ? len : 1);

		memcpy(cut, h.bytes, len);
		if (interactive_has(&i, cut, len))
			assert_true(wanted);
		free(cut);
	}
}

static void interactive_is_told_by_dscp_or_port(void **state)
{
	(void)state;
	assert_is("dscp:32-63", ipv4(46, 6, 0, 1, 2), true);
	assert_is("dscp:32-63", ipv4(31, 6, 0, 1, 2), false);
	assert_is("dscp:46", ipv6(46, 6, 1, 2), true);
	assert_is("dscp:46", ipv6(47, 6, 1, 2), false);
	assert_is("port:53", ipv4(0, 17, 0, 53, 9999), true);
	assert_is("port:53", ipv4(0, 6, 0, 9999, 53), true);
	assert_is("port:53", ipv4(0, 17, 0, 54, 52), false);
	assert_is("port:53", ipv4(0, 1, 0, 53, 53), false);	/* ICMP */
	assert_is("port:53", ipv4(0, 17, 185, 53, 53), false);	/* no ports */
	assert_is("port:53", ipv4(0, 17, 0x2000, 53, 1), true);	/* the first */
	assert_is("port:5000-5009", ipv6(0, 17, 5009, 1), true);
	assert_is("port:5000-5009", ipv6(0, 17, 5010, 1), false);
	assert_is("dscp:8,port:22,port:53", ipv4(0, 6, 0, 22, 1), true);
	assert_is("none", ipv4(46, 6, 0, 22, 1), false);
}

/* --- the host's queue --- */

static void push(struct host *h, struct packet *p, bool is_interactive)
{
	p->cost = 1000;
	assert_true(host_push(h, p, is_interactive));
}

static void interactive_goes_first_and_has_room_of_its_own(void **state)
{
	struct host h = { .order = HOST_PRIO };
	struct packet p[6] = { 0 };

	(void)state;
	host_limit(&h, 2000, 0);
	push(&h, &p[0], false);
	push(&h, &p[1], false);
	p[2].cost = 1000;
	assert_false(host_push(&h, &p[2], false));
	push(&h, &p[3], true);
	push(&h, &p[4], true);
	p[5].cost = 1000;
	assert_false(host_push(&h, &p[5], true));
	assert_int_equal(host_packets(&h), 4);
	assert_int_equal(host_bytes(&h), 4000);
	assert_ptr_equal(host_peek(&h), &p[3]);
	assert_ptr_equal(host_pop(&h, 0, NULL), &p[3]);
	assert_ptr_equal(host_pop(&h, 0, NULL), &p[4]);
	assert_ptr_equal(host_pop(&h, 0, NULL), &p[0]);
	assert_ptr_equal(host_pop(&h, 0, NULL), &p[1]);
	assert_null(host_pop(&h, 0, NULL));
}

static void queues_are_joined_in_their_order(void **state)
{
	struct host h = { .order = HOST_PRIO };
	struct queue firmware = { 0 };
	struct packet p[4] = { 0 };

	(void)state;
	host_join(&h, &firmware);
	assert_null(host_peek(&h));
	push(&h, &p[2], false);
	push(&h, &p[1], true);
	queue_push(&firmware, &p[0]);
	host_join(&h, &firmware);
	push(&h, &p[3], false);
	assert_int_equal(firmware.packets, 0);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(queue_pop(&h.bulk), &p[i]);
	assert_int_equal(h.bulk.packets, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_are_those_of_the_standards),
		cmocka_unit_test(a_level_ends_at_its_edge),
		cmocka_unit_test(a_level_is_read_as_its_most),
		cmocka_unit_test(a_grant_takes_effect_after_its_delay),
		cmocka_unit_test(a_rate_is_granted_to_the_byte),
		cmocka_unit_test(a_shorter_delay_lets_no_grant_overtake),
		cmocka_unit_test(without_a_rate_all_that_passed_is_there),
		cmocka_unit_test(the_rate_is_an_exponential_mean_over_20_ms),
		cmocka_unit_test(equations_by_hand),
		cmocka_unit_test(the_last_level_does_not_lower_an_estimate),
		cmocka_unit_test(what_passed_long_ago_is_forgotten),
		cmocka_unit_test(telemetry_comes_late_and_in_order),
		cmocka_unit_test(a_gate_of_bytes_opens_below_them),
		cmocka_unit_test(a_gate_of_delay_goes_by_the_rate),
		cmocka_unit_test(a_gate_falls_open_when_nothing_comes),
		cmocka_unit_test(interactive_is_told_by_dscp_or_port),
		cmocka_unit_test(interactive_goes_first_and_has_room_of_its_own),
		cmocka_unit_test(queues_are_joined_in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
